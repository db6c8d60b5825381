// What the API object's status should become: ours where we own it, theirs where they do. Pure.
import type { Pod, PodCondition, PodStatus } from '../core/pod.ts';
import { OWNED_CONDITIONS } from './conditions.ts';
import { isFinalPhase } from '../core/phase.ts';

/** Written by us and by others: ours replaces theirs, but is shown only together with a final phase. */
const SHARED_CONDITION = 'DisruptionTarget';

/**
 * `api` is the status the API server has, `ours` the desired one. A final phase is withheld while containers may still be
 * running: others may then treat the pod's resources as free.
 */
export function mergePodStatus(
  pod: Pod,
  api: PodStatus,
  ours: PodStatus,
  mayBeRunning: boolean,
  now: string,
): PodStatus {
  const becomesFinal = !isFinalPhase(api.phase) && isFinalPhase(ours.phase);
  const withheld = becomesFinal && mayBeRunning;
  // A pod that is refused says nothing of its containers: until it is over, what is known of them stays.
  if (withheld && ours.containerStatuses === undefined && api.containerStatuses !== undefined) return api;
  const shown = withheld ? api : ours;
  const showShared = becomesFinal && !withheld;
  const conditions = mergeConditions(api.conditions ?? [], ours.conditions ?? [], showShared, now);
  return {
    ...ours,
    ...keptFromApi(api),
    ...phaseOf(shown),
    conditions: isFinalPhase(shown.phase) ? finallyUnready(pod, conditions, shown, now) : conditions,
  };
}

function mergeConditions(
  api: readonly PodCondition[],
  ours: readonly PodCondition[],
  showShared: boolean,
  now: string,
): readonly PodCondition[] {
  const merged = api.filter((c) => !OWNED_CONDITIONS.includes(c.type));
  for (const condition of ours) {
    if (OWNED_CONDITIONS.includes(condition.type)) {
      merged.push(condition);
    } else if (condition.type === SHARED_CONDITION && showShared) {
      const at = merged.findIndex((c) => c.type === SHARED_CONDITION);
      const shown = { ...condition, lastTransitionTime: transitionOf(condition, merged[at], now) };
      if (at < 0) merged.push(shown);
      else merged[at] = shown;
    }
  }
  return merged;
}

/** For everybody else a condition that was held back turns only now. */
const transitionOf = (ours: PodCondition, theirs: PodCondition | undefined, now: string): string =>
  (theirs?.status === ours.status ? theirs.lastTransitionTime : undefined) ?? now;

/** Phase, reason and message belong together. */
const phaseOf = ({ phase, reason, message }: PodStatus): PodStatus => ({ phase, reason, message }) as PodStatus; // undefined means absent, and must hide what `ours` has

const keptFromApi = (api: PodStatus): PodStatus => ({
  ...(api.resourceClaimStatuses === undefined ? {} : { resourceClaimStatuses: api.resourceClaimStatuses }),
  ...(api.extendedResourceClaimStatus === undefined
    ? {}
    : { extendedResourceClaimStatus: api.extendedResourceClaimStatus }),
  ...(api.nodeAllocatableResourceClaimStatuses === undefined
    ? {}
    : { nodeAllocatableResourceClaimStatuses: api.nodeAllocatableResourceClaimStatuses }),
});

/** A finished pod must not be seen as ready, whatever was computed before. */
function finallyUnready(
  pod: Pod,
  conditions: readonly PodCondition[],
  shown: PodStatus,
  now: string,
): readonly PodCondition[] {
  const readyTypes = ['Ready', 'ContainersReady'];
  const stillReady = conditions.some((c) => readyTypes.includes(c.type) && c.status === 'True');
  if (!stillReady) return conditions;
  const reason = shown.phase === 'Succeeded' ? 'PodCompleted' : 'PodFailed';
  const generation = pod.metadata.generation ?? 0;
  return conditions.map((c) =>
    readyTypes.includes(c.type)
      ? {
          type: c.type,
          ...(generation > 0 ? { observedGeneration: generation } : {}),
          status: 'False',
          lastProbeTime: null,
          lastTransitionTime: c.status === 'False' ? (c.lastTransitionTime ?? now) : now,
          reason,
        }
      : c,
  );
}
