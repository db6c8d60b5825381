// The checks a scheduler would have made: the pod may have come past it, or the node may have changed since.
import type { Node } from '../core/node.ts';
import { isCriticalPod, isStaticPod, type Pod } from '../core/pod.ts';
import { matchesNode, untoleratedTaint } from '../core/selectors.ts';
import { shortageMessage, shortagesOf, type Shortage } from './node-fit.ts';
import { hasFreePorts } from './node-ports.ts';
import { checkOperatingSystem, checkSupplementalGroups } from './operating-system.ts';
import { planPreemption } from './preemption.ts';
import type { Rejection, AdmissionVerdict } from './verdict.ts';

const TEXTS = {
  NodeAffinity: "node(s) didn't match Pod's node affinity/selector",
  NodeName: "node(s) didn't match the requested node name",
  NodePorts: "node(s) didn't have free ports for the requested pod ports",
  TaintToleration: "node(s) had taints that the pod didn't tolerate",
} as const;

type Predicate = keyof typeof TEXTS;
type Misfit = { readonly shortages: readonly Shortage[]; readonly failed: readonly Predicate[] };

/** Everything that keeps the pod off this node, in the order it is reported. */
function misfitOf(pod: Pod, others: readonly Pod[], node: Node): Misfit {
  const failed: Predicate[] = [];
  if (!matchesNode(pod, node)) failed.push('NodeAffinity');
  const { nodeName } = pod.spec;
  if (nodeName !== undefined && nodeName !== '' && nodeName !== node.metadata.name) failed.push('NodeName');
  if (!hasFreePorts(pod, others)) failed.push('NodePorts');
  if (!isStaticPod(pod) && untoleratedTaint(pod, node, ['NoExecute']) !== undefined) failed.push('TaintToleration');
  return { shortages: shortagesOf(pod, others, node), failed };
}

/** True when another look at the node may help: its labels may just have changed. */
export const onlyNodeAffinityFails = (pod: Pod, others: readonly Pod[], node: Node): boolean => {
  if (matchesNode(pod, node)) return false;
  const { shortages, failed } = misfitOf(pod, others, node);
  return shortages.length === 0 && failed.length === 1 && failed[0] === 'NodeAffinity';
};

export function checkPredicates(pod: Pod, others: readonly Pod[], node: Node | undefined): AdmissionVerdict {
  if (node === undefined) return { ok: false, reason: 'InvalidNodeInfo', message: 'Kubelet cannot get node info.' };
  const unsuited = checkOperatingSystem(pod) ?? checkSupplementalGroups(pod, node);
  if (unsuited !== undefined) return { ok: false, ...unsuited };
  return checkFit(pod, others, node);
}

/** Of a new pod, and of one that is here already and asks for something else now. */
export function checkFit(pod: Pod, others: readonly Pod[], node: Node): AdmissionVerdict {
  const misfit = misfitOf(pod, others, node);
  if (isCriticalPod(pod) && misfit.failed.length === 0 && misfit.shortages.length > 0)
    return makeRoom(pod, others, misfit.shortages);
  const rejection = isCriticalPod(pod) ? firstFailed(misfit) : (firstShort(misfit) ?? firstFailed(misfit));
  return rejection === undefined ? { ok: true, victims: [] } : { ok: false, ...rejection };
}

const firstShort = ({ shortages: [first] }: Misfit): Rejection | undefined =>
  first === undefined ? undefined : { reason: `OutOf${first.resource}`, message: shortageMessage(first) };

const firstFailed = ({ failed: [first] }: Misfit): Rejection | undefined =>
  first === undefined ? undefined : { reason: first, message: `Predicate ${first} failed: ${TEXTS[first]}` };

function makeRoom(pod: Pod, others: readonly Pod[], shortages: readonly Shortage[]): AdmissionVerdict {
  const plan = planPreemption(pod, others, shortages);
  if (plan.ok) return { ok: true, victims: plan.victims, scarce: shortages[0]?.resource ?? '' };
  return {
    ok: false,
    reason: 'UnexpectedAdmissionError',
    message: `Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: ${plan.why}`,
  };
}
