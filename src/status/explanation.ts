// The condition of our own that says why a pod is not ready. Pure. It is there only while that is so: it goes in the same
// write that makes the pod ready or final, so it costs none on the way.
import { isFinalPhase } from '../core/phase.ts';
import type { Pod, PodCondition, PodStatus } from '../core/pod.ts';

/** A qualified name, which is what the API server takes; the prefix says whose it is. */
export const WHY_NOT_READY = 'kubelet-ts/WhyNotReady';

export type Explanation = { readonly reason: string; readonly message: string };

export function withExplanation(pod: Pod, status: PodStatus, { reason, message }: Explanation): PodStatus {
  const generation = pod.metadata.generation ?? 0;
  const condition: PodCondition = {
    type: WHY_NOT_READY,
    ...(generation > 0 ? { observedGeneration: generation } : {}),
    status: 'True',
    reason,
    message,
    lastProbeTime: null,
  };
  const others = (status.conditions ?? []).filter((c) => c.type !== WHY_NOT_READY);
  // First, where the next full status keeps it: in another order the same conditions would be another status.
  return { ...status, conditions: [condition, ...others] };
}

/** A pod that is ready or has ended needs no explanation. */
export const needsExplanation = ({ phase, conditions = [] }: PodStatus): boolean =>
  !isFinalPhase(phase) && !conditions.some((c) => c.type === 'Ready' && c.status === 'True');

/** Without an explanation that is out of date, or of a kubelet that was to give some. */
export function withCurrentExplanation(status: PodStatus, wanted: boolean): PodStatus {
  const given = status.conditions?.some((c) => c.type === WHY_NOT_READY) === true;
  if (!given || (wanted && needsExplanation(status))) return status;
  return { ...status, conditions: (status.conditions ?? []).filter((c) => c.type !== WHY_NOT_READY) };
}
