// What a pod waits for before its containers can be made: the node, its turn, volumes, the sandbox. Pure.
import { humanSpan } from '../core/human.ts';
import { isStaticPod, namespaceOf, type Pod } from '../core/pod.ts';
import type { PodFacts, Rule, Why } from './facts.ts';
import { eventMs, eventText, forSpan, lastEvent, nextTry, quote, retryOf, says, shortly } from './words.ts';

const hasSandbox = ({ status }: PodFacts): boolean =>
  status.conditions?.some((c) => c.type === 'PodReadyToStartContainers' && c.status === 'True') === true;

const waits = (facts: PodFacts, why: Omit<Why, 'evidence'> & { readonly evidence?: readonly string[] }): Why => ({
  evidence: [],
  ...why,
  ...retryOf(facts),
});

export const runtimeDown: Rule = (facts) =>
  facts.runtimeProblem === undefined
    ? undefined
    : waits(facts, {
        state: 'failing',
        cause: 'RuntimeDown',
        sentence: 'The pod waits for the container runtime, which does not work.',
        evidence: [facts.runtimeProblem],
        todo: 'Look at the runtime on the node (`systemctl status containerd`, `crictl info`).',
      });

export const notAdmitted: Rule = (facts) => {
  if (facts.status.phase !== undefined) return undefined;
  const twin = predecessor(facts);
  if (twin !== undefined)
    return waits(facts, {
      state: 'waiting',
      cause: 'PredecessorStopping',
      sentence: `The static pod waits for the one of the same name before it (uid ${twin.metadata.uid ?? ''}) to stop.`,
      todo: '',
    });
  return waits(facts, {
    state: 'progressing',
    cause: 'Admission',
    sentence: 'The node has just learned of the pod and is judging whether it can take it.',
    todo: '',
  });
};

const predecessor = ({ pod, others }: PodFacts): Pod | undefined =>
  !isStaticPod(pod)
    ? undefined
    : others.find(
        (o) =>
          o.metadata.uid !== pod.metadata.uid &&
          o.metadata.name === pod.metadata.name &&
          namespaceOf(o) === namespaceOf(pod),
      );

export const networkDown: Rule = (facts) => {
  if (facts.networkProblem === undefined || facts.pod.spec.hostNetwork === true || hasSandbox(facts)) return undefined;
  return waits(facts, {
    state: 'failing',
    cause: 'NetworkNotReady',
    sentence: 'The pod waits for the network of the node: no CNI plugin is ready.',
    evidence: [facts.networkProblem],
    todo: 'Install or repair the CNI plugin; its configuration belongs into /etc/cni/net.d.',
  });
};

export const waitsForTurn: Rule = (facts) => {
  const turn = facts.underWay.find((s) => s.name === 'turn');
  if (turn === undefined || hasSandbox(facts)) return undefined;
  return waits(facts, {
    state: 'waiting',
    cause: 'StartQueued',
    sentence: `The pod waits for its turn to start${forSpan(facts, turn.sinceMs)}: other pods are starting.`,
    todo: '',
  });
};

type VolumeCause = { readonly words: RegExp; readonly cause: string; readonly what: string; readonly todo: string };

const VOLUME_CAUSES: readonly VolumeCause[] = [
  {
    words: /secrets? ".*" not found|secret .* not (found|registered)|references non-existent secret key/i,
    cause: 'VolumeSecretMissing',
    what: 'a secret that is not there',
    todo: 'Create the secret (or the key in it), or mark the volume optional.',
  },
  {
    words: /configmaps? ".*" not found|configmap .* not (found|registered)|references non-existent config key/i,
    cause: 'VolumeConfigMapMissing',
    what: 'a config map that is not there',
    todo: 'Create the config map (or the key in it), or mark the volume optional.',
  },
  {
    words: /persistentvolumeclaims? ".*" not found/i,
    cause: 'ClaimMissing',
    what: 'a claim that is not there',
    todo: 'Create the PersistentVolumeClaim.',
  },
  {
    words: /not bound|unbound/i,
    cause: 'ClaimNotBound',
    what: 'a claim that is not bound to a volume',
    todo: 'Check the storage class and its provisioner, or create a matching PersistentVolume.',
  },
  {
    words: /driver name .* not found|not registered|no such driver/i,
    cause: 'CsiDriverMissing',
    what: 'a CSI driver that is not registered on this node',
    todo: "Check that the driver's DaemonSet runs on this node.",
  },
  {
    words: /to be attached|not attached|AttachVolume|multi-attach/i,
    cause: 'VolumeNotAttached',
    what: 'a volume to be attached to this node',
    todo: 'Look at the VolumeAttachment and the attacher; the volume may still be attached elsewhere.',
  },
  {
    words: /hostPath type check failed/i,
    cause: 'HostPathMissing',
    what: 'a path on the host that is not there, or of another kind',
    todo: 'Create the path on the node, or set its type to DirectoryOrCreate.',
  },
  {
    words: /permission denied|access denied|operation not permitted/i,
    cause: 'VolumeAccessDenied',
    what: 'a volume whose server refuses access',
    todo: 'Check the exports or credentials at the storage server.',
  },
  {
    words: /no such host|connection refused|connection timed out|No route to host|does not answer|stale/i,
    cause: 'StorageUnreachable',
    what: 'a storage server that does not answer',
    todo: 'Check the storage server and the network to it.',
  },
  {
    words: /mount failed|exit status|wrong fs type|bad superblock|fsck/i,
    cause: 'MountFailed',
    what: 'a volume that cannot be mounted',
    todo: 'See the evidence; the file system or its tools (mount.*) may be missing or damaged.',
  },
];

/** Volumes are mounted before anything else is made; their events tell more than their complaints once they fail. */
export const volumesMissing: Rule = (facts) => {
  if (facts.volumes.length === 0 || hasSandbox(facts)) return undefined;
  const event = lastEvent(facts, 'FailedMount', 'FailedAttachVolume', 'FailedMapVolume');
  const clauses = facts.steady === true ? facts.volumes.map((v) => v.replace(/ \(for [^()]*\)$/, '')) : facts.volumes;
  const text = clauses.join('; ');
  const found = VOLUME_CAUSES.find((c) => says(text, c.words));
  if (found === undefined && event === undefined)
    return waits(facts, {
      state: 'progressing',
      cause: 'VolumesMounting',
      sentence: `The pod waits for its volumes: ${shortly(text)}.`,
      todo: '',
    });
  const cause = found ?? VOLUME_CAUSES.find((c) => says(event?.message ?? '', c.words));
  return waits(facts, {
    state: 'failing',
    cause: cause?.cause ?? 'VolumesNotMounted',
    sentence: `The pod waits for ${cause?.what ?? 'volumes that cannot be mounted'}: ${shortly(text)}.`,
    evidence: [...facts.volumes.map((v) => shortly(v, 600)), ...(event === undefined ? [] : [eventText(event)])],
    todo: cause?.todo ?? 'See the evidence; mounting is tried again by itself.',
  });
};

type SandboxCause = { readonly words: RegExp; readonly cause: string; readonly because: string; readonly todo: string };

const SANDBOX_CAUSES: readonly SandboxCause[] = [
  {
    words: /no IP addresses available|IPAM|no available IP|failed to allocate for range/i,
    cause: 'NoAddressLeft',
    because: 'the network has no address left for it',
    todo: "Enlarge the node's pod CIDR, or clean up addresses of pods that are gone (/var/lib/cni/networks).",
  },
  {
    words: /address already in use|port is already allocated/i,
    cause: 'PortTaken',
    because: 'a host port is taken by a process outside of Kubernetes',
    todo: 'Find it with `ss -ltnp` on the node, or use another hostPort.',
  },
  {
    words: /runtime handler|runtimeclass|no runtime for/i,
    cause: 'RuntimeHandlerMissing',
    because: 'the runtime does not know the handler of its runtime class',
    todo: "Configure the handler in the runtime, or correct the pod's runtimeClassName.",
  },
  {
    words: /failed to (get|pull) sandbox image|pause/i,
    cause: 'SandboxImageMissing',
    because: "the runtime's sandbox (pause) image cannot be pulled",
    todo: 'Load the image onto the node, or set another in the configuration of the runtime.',
  },
  {
    words: /is reserved for/i,
    cause: 'SandboxNameTaken',
    because: 'the runtime still has a sandbox of this name',
    todo: 'It is removed by itself; if not, `crictl rmp -f`.',
  },
  {
    words: /cni|network/i,
    cause: 'NetworkSetupFailed',
    because: 'the CNI plugin could not set its network up',
    todo: 'Look at the log of the CNI plugin on this node.',
  },
];

export const sandboxFailed: Rule = (facts) => {
  const failed = lastEvent(facts, 'FailedCreatePodSandBox', 'FailedPodSandBoxStatus', 'FailedCreatePodContainer');
  const since = lastEvent(facts, 'Pulling', 'Pulled', 'Created', 'Started');
  if (failed === undefined || hasSandbox(facts) || eventMs(since) > eventMs(failed)) return undefined;
  const message = failed.message ?? '';
  if (failed.reason === 'FailedCreatePodContainer')
    return waits(facts, {
      state: 'failing',
      cause: 'CgroupFailed',
      sentence: `The cgroup of the pod cannot be made${nextTry(facts)}.`,
      evidence: [eventText(failed)],
      todo: 'Check that the cgroup hierarchy is writable and that its controllers are enabled; `kubelet node doctor` does.',
    });
  const found = SANDBOX_CAUSES.find((c) => says(message, c.words));
  return waits(facts, {
    state: 'failing',
    cause: found?.cause ?? 'SandboxFailed',
    sentence: `The sandbox of the pod cannot be made because ${found?.because ?? 'the runtime failed'}${nextTry(facts)}.`,
    evidence: [eventText(failed)],
    todo: found?.todo ?? 'See the evidence, and the log of the runtime.',
  });
};

/** Nothing is known to be wrong: what the pod is at. */
export const underWay: Rule = (facts) => {
  const { worker } = facts;
  const step = facts.underWay.at(-1);
  if (step !== undefined)
    return {
      state: 'progressing',
      cause: 'Starting',
      sentence: `The pod is starting: ${STEPS[step.name] ?? step.name}${step.of === undefined ? '' : ` ${quote(step.of)}`}${forSpan(facts, step.sinceMs)}.`,
      evidence: [],
      todo: '',
    };
  if (worker?.lastError === undefined) return undefined;
  return {
    state: 'failing',
    cause: 'SyncFailed',
    sentence: `The pod could not be brought up${nextTry(facts)}${facts.steady === true ? '' : `: ${shortly(worker.lastError.message)}`}.`,
    evidence: [`failed ${worker.lastError.attempts} times, last ${humanSpan(facts.nowMs - worker.lastError.atMs)} ago`],
    todo: 'See the log of the kubelet for this pod.',
    ...retryOf(facts),
  };
};

const STEPS: Readonly<Record<string, string>> = {
  admit: 'being judged',
  turn: 'waiting for its turn',
  cgroup: 'its cgroup is being made',
  directories: 'its directories are being made',
  volumes: 'its volumes are being mounted',
  image: 'making sure of image',
  runPodSandbox: 'its sandbox and network are being made',
  createContainer: 'a container is being created',
  startContainer: 'a container is being started',
  pullImage: 'an image is being pulled',
  imageStatus: 'the runtime is asked about its image',
  observe: 'the runtime is asked how it is',
  status: 'the API server is told',
};
