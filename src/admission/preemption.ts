// Which pods make room for a critical one: as few and as unimportant as possible. Pure; the caller evicts.
import { isCriticalPod, type Pod, type QosClass } from '../core/pod.ts';
import { qosClassOf } from '../core/qos.ts';
import { requestOf, type Shortage } from './node-fit.ts';

type Need = { readonly resource: string; readonly amount: number };

/** What a victim's status and events say. */
export const PREEMPTED = {
  reason: 'Preempting',
  message: 'Preempted in order to admit critical pod',
  condition: {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'TerminationByKubelet',
    message: 'Pod was preempted by Kubelet to accommodate a critical pod.',
  },
} as const;

export type PreemptionPlan =
  | { readonly ok: true; readonly victims: readonly Pod[] }
  | { readonly ok: false; readonly why: string };

export function planPreemption(pod: Pod, running: readonly Pod[], shortages: readonly Shortage[]): PreemptionPlan {
  const needs = shortages.map((s) => ({ resource: s.resource, amount: s.requested - (s.capacity - s.used) }));
  const tier = (qos: QosClass): Pod[] => running.filter((p) => mayPreempt(pod, p) && qosClassOf(p) === qos);
  const [bestEffort, burstable, guaranteed] = [tier('BestEffort'), tier('Burstable'), tier('Guaranteed')];
  const unmet = without(needs, [...bestEffort, ...burstable, ...guaranteed]);
  if (unmet.length > 0)
    return { ok: false, why: `no set of running pods found to reclaim resources: ${textOf(unmet)}` };
  // Each tier gives only what the tiers below it cannot.
  const fromGuaranteed = closest(guaranteed, without(needs, [...bestEffort, ...burstable]));
  const fromBurstable = closest(burstable, without(needs, [...bestEffort, ...fromGuaranteed]));
  const fromBestEffort = closest(bestEffort, without(needs, [...fromBurstable, ...fromGuaranteed]));
  return { ok: true, victims: [...fromBestEffort, ...fromBurstable, ...fromGuaranteed] };
}

/** Who has no priority is not compared by it: a static pod without one is critical and yields to nobody. */
function mayPreempt(pod: Pod, other: Pod): boolean {
  if (isCriticalPod(pod) && !isCriticalPod(other)) return true;
  const [mine, theirs] = [pod.spec.priority, other.spec.priority];
  return mine !== undefined && theirs !== undefined && mine > theirs;
}

/** What is still needed once these pods are gone. */
const without = (needs: readonly Need[], pods: readonly Pod[]): readonly Need[] =>
  needs
    .map(({ resource, amount }) => ({
      resource,
      amount: amount - pods.reduce((sum, p) => sum + requestOf(p, resource), 0),
    }))
    .filter((need) => need.amount > 0);

/** Takes the pod that comes nearest to the need, again and again, until nothing is needed. */
function closest(candidates: readonly Pod[], needs: readonly Need[]): readonly Pod[] {
  const left = [...candidates];
  const chosen: Pod[] = [];
  let open = needs;
  while (open.length > 0 && left.length > 0) {
    let best = 0;
    for (let i = 1; i < left.length; i++) if (isBetter(left[i]!, left[best]!, open)) best = i;
    const [victim] = left.splice(best, 1);
    chosen.push(victim!);
    open = without(open, [victim!]);
  }
  return chosen;
}

function isBetter(a: Pod, b: Pod, needs: readonly Need[]): boolean {
  const difference = distance(a, needs) - distance(b, needs);
  if (difference !== 0) return difference < 0;
  for (const resource of ['memory', 'cpu']) {
    const [ofA, ofB] = [requestOf(a, resource), requestOf(b, resource)];
    if (ofA !== ofB) return ofA < ofB;
  }
  return true;
}

/** Sum of the squared shares of each need that the pod would leave open. */
const distance = (pod: Pod, needs: readonly Need[]): number =>
  needs.reduce((sum, { resource, amount }) => {
    const open = amount - requestOf(pod, resource);
    return open > 0 ? sum + (open / amount) ** 2 : sum;
  }, 0);

const textOf = (needs: readonly Need[]): string =>
  `[${needs.map((n) => `(res: ${n.resource}, q: ${n.amount}), `).join('')}]`;
