// Why a pod ended: refused by the node, taken off it, out of time, failed, or done. Pure.
import { humanBytes } from '../core/human.ts';
import { isSidecar, namespaceOf, type ContainerPort, type Pod } from '../core/pod.ts';
import { worstEnding } from './containers.ts';
import type { PodFacts, Rule, Why } from './facts.ts';
import { quote, shortly } from './words.ts';

type Told = { readonly cause: string; readonly because: (facts: PodFacts) => string; readonly todo: string };
const told = (cause: string, because: string, todo: string): Told => ({ cause, because: () => because, todo });

const ANOTHER_NODE =
  'A controller makes a new pod for another node; a pod of its own must be deleted and created again.';

/** Reasons the node gives a pod it does not take, or takes off again. */
const REASONS: Readonly<Record<string, Told>> = {
  NodePorts: {
    cause: 'PortTaken',
    because: (facts) => `host port ${portTaken(facts)}`,
    todo: 'Use another hostPort, or another node.',
  },
  NodeAffinity: told(
    'NodeAffinity',
    "the node's labels do not match the pod's nodeSelector or node affinity",
    `Correct the labels or the pod. ${ANOTHER_NODE}`,
  ),
  NodeName: told('NodeName', 'the pod is meant for a node of another name', 'Correct nodeName in the pod.'),
  TaintToleration: told(
    'Taint',
    'the node has a taint that the pod does not tolerate',
    'Add a toleration to the pod, or remove the taint.',
  ),
  SysctlForbidden: told(
    'SysctlForbidden',
    'the pod asks for a sysctl that this node does not allow',
    'Allow it with allowedUnsafeSysctls, or remove it from the pod.',
  ),
  UnsupportedVolume: told(
    'VolumeUnsupported',
    'one of its volumes is of a kind that cannot be had on this node',
    'Use another kind of volume; docs/COMPATIBILITY.md lists what is supported.',
  ),
  AppArmor: told('AppArmor', 'AppArmor cannot be enforced on this node', 'Load the profile, or enable AppArmor.'),
  TopologyAffinityError: told(
    'TopologyAffinity',
    'its CPUs, memory and devices cannot be aligned on this node',
    'Relax topologyManagerPolicy, or ask for less.',
  ),
  SMTAlignmentError: told(
    'WholeCores',
    'it asks for a number of CPUs that is not a whole number of cores',
    'Ask for a multiple of the threads per core, or relax full-pcpus-only.',
  ),
  InvalidNodeInfo: told('NodeUnknown', 'the node did not know itself yet', ANOTHER_NODE),
  PodOSSelectorNodeLabelDoesNotMatch: told('WrongOS', 'it is for another operating system', 'Choose another node.'),
  PodOSNotSupported: told('WrongOS', 'it is for another operating system', 'Choose another node.'),
  SupplementalGroupsPolicyNotSupported: told(
    'GroupsPolicyUnsupported',
    'the runtime does not support its supplementalGroupsPolicy',
    'Update the runtime, or use the policy Merge.',
  ),
  PodLevelResourcesNotSupported: told(
    'PodResourcesUnsupported',
    'pod level resources are turned off on this node',
    'Turn the feature gate PodLevelResources on, or set resources on containers.',
  ),
  PodFeatureUnsupported: told('FeatureUnsupported', 'it needs a feature that is off on this node', ANOTHER_NODE),
  NodeShutdown: told('NodeShutdown', 'the node is shutting down', ANOTHER_NODE),
  UnexpectedAdmissionError: told(
    'AdmissionFailed',
    'its resources could not be allocated',
    'See the evidence: a device plugin or DRA driver may not be there.',
  ),
};

const LOCAL_STORAGE = /exceeds the limit|ephemeral local storage|local ephemeral storage limit/;

export const ended: Rule = (facts) => {
  const { phase, reason = '' } = facts.status;
  if (phase === 'Succeeded')
    return {
      state: 'ended',
      cause: 'Completed',
      sentence: 'The pod is done: all its containers ended without an error.',
      evidence: [],
      todo: '',
    };
  if (phase !== 'Failed') return undefined;
  return takenOff(facts, reason) ?? refused(facts, reason) ?? worstEnding(facts) ?? unexplained(facts, reason);
};

function takenOff(facts: PodFacts, reason: string): Why | undefined {
  const message = facts.status.message ?? '';
  const why = (cause: string, sentence: string, todo: string): Why => ({
    state: 'failed',
    cause,
    sentence,
    evidence: message === '' ? [] : [`${reason}: ${shortly(message, 600)}`],
    todo,
  });
  switch (reason) {
    case 'Evicted':
      if (message.startsWith('The node had condition'))
        return why(
          'RefusedUnderPressure',
          `The node did not take the pod: it is under pressure (${conditionsIn(message)}).`,
          `Free the resource on the node. ${ANOTHER_NODE}`,
        );
      if (LOCAL_STORAGE.test(message))
        return why(
          'EvictedForStorage',
          'The pod was evicted: it used more local storage than its limit.',
          'Raise ephemeral-storage or sizeLimit, or write less to the container and to emptyDir.',
        );
      return why(
        'EvictedUnderPressure',
        `The pod was evicted: the node ran low on ${resourceIn(message)}.`,
        'Ask for what the pod needs in requests; pods that use more than they ask for go first.',
      );
    case 'Preempting':
      return why('Preempted', 'The pod had to make room for a critical pod.', ANOTHER_NODE);
    case 'DeadlineExceeded':
      return why(
        'DeadlineExceeded',
        `The pod was stopped: it ran longer than its activeDeadlineSeconds (${facts.pod.spec.activeDeadlineSeconds ?? '?'} s).`,
        'Raise activeDeadlineSeconds, or find out what takes so long.',
      );
    case 'Terminated':
      return why('NodeShutdown', 'The pod was stopped because the node was shut down.', ANOTHER_NODE);
    default:
      return undefined;
  }
}

const conditionsIn = (message: string): string => /\[(.*?)\]/.exec(message)?.[1] ?? 'unknown';
const resourceIn = (message: string): string =>
  /low on resource: ([\w.-]+?)\.(?: |$)/.exec(message)?.[1] ?? 'resources';

function refused(facts: PodFacts, reason: string): Why | undefined {
  const message = facts.status.message ?? '';
  const evidence = message === '' ? [] : [`${reason}: ${shortly(message, 600)}`];
  const short = /^OutOf(.+)$/.exec(reason)?.[1];
  if (short !== undefined)
    return {
      state: 'failed',
      cause: 'OutOfResource',
      sentence: `The node did not take the pod: not enough ${short} is left${shortageText(short, message)}.`,
      evidence,
      todo: `Ask for less, or free some on this node. ${ANOTHER_NODE}`,
    };
  const known = REASONS[reason];
  if (known === undefined) return undefined;
  return {
    state: 'failed',
    cause: known.cause,
    sentence: `The node did not take the pod: ${known.because(facts)}.`,
    evidence,
    todo: known.todo,
  };
}

function shortageText(resource: string, message: string): string {
  const found = /requested: (\d+), used: (\d+), capacity: (\d+)/.exec(message);
  if (found === null) return '';
  const [asked, taken, all] = found.slice(1).map((amount) => amountText(resource, Number(amount)));
  return ` (asked for ${asked}, ${taken} of ${all} are taken)`;
}

const amountText = (resource: string, amount: number): string => {
  if (resource === 'cpu') return `${amount}m`;
  return resource === 'memory' || resource === 'ephemeral-storage' ? humanBytes(amount) : String(amount);
};

const unexplained = ({ status }: PodFacts, reason: string): Why => ({
  state: 'failed',
  cause: reason === '' ? 'Failed' : reason,
  sentence: `The pod failed${reason === '' ? '' : ` (${reason})`}${status.message === undefined ? '' : `: ${shortly(status.message)}`}.`,
  evidence: [],
  todo: 'Look at its events and the logs of its containers.',
});

const hostPortsOf = (pod: Pod): readonly ContainerPort[] =>
  [...pod.spec.containers, ...(pod.spec.initContainers ?? []).filter(isSidecar)]
    .flatMap((c) => c.ports ?? [])
    .filter((p) => (p.hostPort ?? 0) > 0);

/** `8080 is taken by pod "default/web"`, with all that can be said. */
function portTaken({ pod, others }: PodFacts): string {
  for (const port of hostPortsOf(pod))
    for (const other of others)
      if (
        other.metadata.uid !== pod.metadata.uid &&
        hostPortsOf(other).some(
          (p) => p.hostPort === port.hostPort && (p.protocol ?? 'TCP') === (port.protocol ?? 'TCP'),
        )
      )
        return `${port.hostPort} is taken by pod ${quote(`${namespaceOf(other)}/${other.metadata.name}`)}`;
  const wanted = hostPortsOf(pod).map((p) => p.hostPort);
  return `${wanted.join(' or ')} was taken by another pod`;
}
