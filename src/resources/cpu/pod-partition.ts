// Pods with CPUs of their own (gate `PodLevelResourceManagers`): the pod gets one set of CPUs, of which its containers get
// theirs or share what is left. Pure but for the state it is given.
import type { CpuSet } from '../../core/cpuset.ts';
import { isSidecar, uidOf, type Pod } from '../../core/pod.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { CpuState } from './cpu-state.ts';
import type { StaticPolicy } from './static-policy.ts';

/** Why some container of the pod would be left without any CPU; undefined when none would. */
export function emptySharedPool(policy: StaticPolicy, pod: Pod): string | undefined {
  const total = policy.requestedByPod(pod);
  let exclusive = 0;
  let isShared = false;
  for (const container of pod.spec.initContainers ?? []) {
    const own = policy.requested(pod, container);
    if (isSidecar(container)) {
      exclusive += own;
      isShared ||= own === 0;
    } else if (own === 0 && exclusive >= total)
      return 'pod rejected, pod has shared init containers but no cpus available for them';
  }
  for (const container of pod.spec.containers) {
    const own = policy.requested(pod, container);
    exclusive += own;
    isShared ||= own === 0;
  }
  return isShared && exclusive >= total
    ? 'pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers'
    : undefined;
}

/** What each container of the pod got: its own CPUs, or CPUs that the pod's containers share. */
export type PodShare = { readonly container: string; readonly exclusive: boolean };

export function allocatePodCpus(
  policy: StaticPolicy,
  state: CpuState,
  pod: Pod,
  numaNodes: readonly number[] | undefined,
): readonly PodShare[] {
  const uid = uidOf(pod);
  const count = policy.requestedByPod(pod);
  if (count === 0 || state.pods.has(uid)) return [];
  const problem = emptySharedPool(policy, pod);
  if (problem !== undefined)
    throw new KubeletError('exhausted', problem, { detail: { reason: 'EmptyPodSharedPoolError' } });
  const all = policy.takeForPod(state, uid, count, numaNodes);
  const { sets, exclusive } = partition(policy, pod, all);
  for (const [name, cpus] of sets) state.set(uid, name, cpus);
  return [...sets.keys()].map((name) => ({ container: name, exclusive: exclusive.has(name) }));
}

type Partition = { readonly sets: ReadonlyMap<string, CpuSet>; readonly exclusive: ReadonlySet<string> };

function partition(policy: StaticPolicy, pod: Pod, all: CpuSet): Partition {
  const sets = new Map<string, CpuSet>();
  const exclusive = new Set<string>();
  let sidecars: CpuSet = new Set();
  for (const container of pod.spec.initContainers ?? []) {
    const own = policy.requested(pod, container);
    const pool = all.difference(sidecars);
    if (own > 0) {
      const cpus = policy.take(pool, own);
      exclusive.add(container.name);
      sets.set(container.name, cpus);
      if (isSidecar(container)) sidecars = sidecars.union(cpus);
    } else if (!isSidecar(container)) sets.set(container.name, pool);
  }
  let rest = all.difference(sidecars);
  for (const container of pod.spec.containers) {
    const own = policy.requested(pod, container);
    if (own === 0) continue;
    const cpus = policy.take(rest, own);
    exclusive.add(container.name);
    sets.set(container.name, cpus);
    rest = rest.difference(cpus);
  }
  for (const { name } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers])
    if (!sets.has(name)) sets.set(name, rest);
  return { sets, exclusive };
}
