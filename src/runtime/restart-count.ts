// The restart count of a container whose earlier instances the runtime does not have any more, by what was last said of it.
import type { ContainerStatus, Pod } from '../core/pod.ts';
import { RESTARTING_ALL } from '../core/restart-policy.ts';

/** Ends that nobody saw were counted when they were noticed. */
const COUNTED = new Set(['ContainerStatusUnknown', RESTARTING_ALL]);

export function restartCountFromStatus({ status }: Pod, name: string): number {
  const known = [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ].find((s) => s.name === name) as Partial<ContainerStatus> | undefined;
  if (known === undefined) return 0;
  const { state, lastState, restartCount = 0 } = known;
  const hadOne = state?.running !== undefined || state?.terminated !== undefined;
  const last = lastState?.terminated?.reason;
  return restartCount + (hadOne || (lastState?.terminated !== undefined && !COUNTED.has(last ?? '')) ? 1 : 0);
}
