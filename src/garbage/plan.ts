// What is garbage. Pure: listings, what is known about pods, the policy and the time in; lists of ids out.
import type { ContainerId, PodUid, SandboxId } from '../core/ids.ts';
import type { ObservedState, PodSnapshot } from '../core/snapshot.ts';

export type GcContainer = {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly podUid: PodUid;
  readonly podName: string;
  readonly namespace: string;
  readonly name: string;
  readonly state: ObservedState;
  /** Grows with every instance of the container. */
  readonly attempt: number;
  /** Nanoseconds since the epoch. */
  readonly createdAt: bigint;
};
export type GcSandbox = {
  readonly id: SandboxId;
  readonly podUid: PodUid;
  readonly ready: boolean;
  readonly attempt: number;
  readonly createdAt: bigint;
};

export type GcPolicy = {
  /** `minimum-container-ttl-duration`: younger ones stay. */
  readonly minAgeMs: number;
  /** Dead instances kept for each container of a pod; negative: all. */
  readonly maxPerContainer: number;
  /** Dead instances kept in all; negative: no limit. */
  readonly maxContainers: number;
};
export const DEFAULT_POLICY: GcPolicy = { minAgeMs: 0, maxPerContainer: 1, maxContainers: -1 };

/** Whether everything of a pod may go, because the pod is gone for good or is evicted. */
export type IsRemovable = (uid: PodUid) => boolean;

/** A container that has been created and not started is being started, not dead, for this long. */
const STARTING_NANOS = 60_000_000_000n;

const newestFirst = (a: { readonly createdAt: bigint }, b: { readonly createdAt: bigint }): number =>
  a.createdAt > b.createdAt ? -1 : a.createdAt < b.createdAt ? 1 : 0;

/** Among instances of the same: their numbers grow, the clock may have been set back between two of them. */
type Instance = { readonly attempt: number; readonly createdAt: bigint };
const latestFirst = (a: Instance, b: Instance): number => b.attempt - a.attempt || newestFirst(a, b);

const groupBy = <T>(items: readonly T[], keyOf: (item: T) => string): readonly T[][] => {
  const groups = new Map<string, T[]>();
  for (const entry of items) {
    const list = groups.get(keyOf(entry));
    if (list === undefined) groups.set(keyOf(entry), [entry]);
    else list.push(entry);
  }
  return [...groups.values()];
};

/** Containers to remove: those of removable pods first, then the oldest. */
export function planContainers(
  containers: readonly GcContainer[],
  isRemovable: IsRemovable,
  policy: GcPolicy,
  nowNanos: bigint,
): readonly GcContainer[] {
  const newest = nowNanos - BigInt(Math.round(policy.minAgeMs)) * 1_000_000n;
  const dead = containers.filter(
    (c) =>
      c.state !== 'running' &&
      c.createdAt <= newest &&
      !(c.state === 'created' && nowNanos - c.createdAt < STARTING_NANOS),
  );
  const gone = dead.filter((c) => isRemovable(c.podUid));
  const rest = dead.filter((c) => !isRemovable(c.podUid));
  const groups = groupBy(rest, (c) => `${c.podUid} ${c.name}`).map((group) => group.sort(latestFirst));
  const excess: GcContainer[] = [];
  const shorten = (keep: number): void => {
    for (const group of groups) excess.push(...group.splice(keep));
  };
  if (policy.maxPerContainer >= 0) shorten(policy.maxPerContainer);
  const left = (): number => groups.reduce((sum, group) => sum + group.length, 0);
  if (policy.maxContainers >= 0 && left() > policy.maxContainers) {
    shorten(Math.max(1, Math.floor(policy.maxContainers / Math.max(1, groups.length))));
    if (left() > policy.maxContainers) excess.push(...groups.flat().sort(newestFirst).slice(policy.maxContainers));
  }
  return [...gone.sort(newestFirst).reverse(), ...excess.sort(newestFirst).reverse()];
}

/** Sandboxes to stop and remove: not ready and without containers; of a pod that stays, not the newest one. */
export function planSandboxes(
  sandboxes: readonly GcSandbox[],
  inUse: ReadonlySet<SandboxId>,
  isRemovable: IsRemovable,
): readonly GcSandbox[] {
  return groupBy(sandboxes, (s) => s.podUid)
    .flatMap((group) => {
      const sorted = [...group].sort(latestFirst);
      const first = sorted[0];
      return first !== undefined && isRemovable(first.podUid) ? sorted : sorted.slice(1);
    })
    .filter((s) => !s.ready && !inUse.has(s.id))
    .sort(newestFirst)
    .reverse();
}

/** Names in `/var/log/pods` (`<namespace>_<name>_<uid>`) whose pods are gone. */
export const planLogDirectories = (names: readonly string[], isRemovable: IsRemovable): readonly string[] =>
  names.filter((name) => {
    const uid = name.slice(name.lastIndexOf('_') + 1);
    return name.includes('_') && uid !== '' && isRemovable(uid as PodUid);
  });

/** Dead instances of a pod's containers beyond the newest `keep` of each name. */
export function planPrune(snapshot: PodSnapshot, keep: number, only?: string): readonly ContainerId[] {
  const dead = snapshot.containers.filter(
    (c) => (c.state === 'exited' || c.state === 'unknown') && (only === undefined || c.name === only),
  );
  return groupBy(dead, (c) => c.name).flatMap((group) =>
    group
      .sort(latestFirst)
      .slice(keep)
      .map((c) => c.id),
  );
}
