// What a pod was resized to is what its container has, unless the agent says that it must wait.
import { MINUTE, uidOf, type Invariant } from './violation.ts';

const SHARES_PER_CPU = 1024;

export const resizeArrives: Invariant = ({ pods, running, overdue }) =>
  running.flatMap((container) => {
    const seen = pods.get(uidOf(container));
    if (seen === undefined || seen.kind !== 'resized' || seen.isDeleting || seen.hasEnded) return [];
    const { pod } = seen;
    if (pod.status?.conditions?.some((c) => c.type === 'PodResizePending' && c.status === 'True') === true) return [];
    const wanted = pod.spec.containers[0]?.resources?.requests?.['cpu'] ?? '';
    const milli = wanted.endsWith('m') ? Number(wanted.slice(0, -1)) : 1000 * Number(wanted);
    const shares = Math.floor((milli * SHARES_PER_CPU) / 1000);
    if (container.resources?.cpuShares === shares) return [];
    if (!overdue(`resize ${container.id} ${wanted}`, 5 * MINUTE)) return [];
    return [`${pod.metadata.name} was to have ${wanted}, has ${container.resources?.cpuShares} shares`];
  });
