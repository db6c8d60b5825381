// Pods with memory of their own (gate `PodLevelResourceManagers`): the pod gets one block per type, of which its containers
// get theirs or share what is left. Pure but for the state it is given.
import { isSidecar, uidOf, type Container, type Pod } from '../../core/pod.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { TopologyHint } from '../topology/hint-provider.ts';
import { charge, type MemoryBlock } from './machine-memory.ts';
import type { MemoryPolicy } from './memory-policy.ts';
import type { MemoryRequests } from './memory-requests.ts';
import type { MemoryState } from './memory-state.ts';

type RequestsOf = (container: Container) => MemoryRequests;

/** Why some container of the pod would be left without memory; undefined when none would. */
export function emptySharedMemory(pod: Pod, total: MemoryRequests, requestsOf: RequestsOf): string | undefined {
  const exclusive = new Map<string, number>();
  let isShared = false;
  const usedUp = (): string | undefined => [...total].find(([type, bytes]) => (exclusive.get(type) ?? 0) >= bytes)?.[0];
  const count = (container: Container): void => {
    const own = requestsOf(container);
    isShared ||= own.size === 0;
    for (const [type, bytes] of own) exclusive.set(type, (exclusive.get(type) ?? 0) + bytes);
  };
  for (const container of pod.spec.initContainers ?? []) {
    if (isSidecar(container)) count(container);
    else if (requestsOf(container).size === 0) {
      const type = usedUp();
      if (type !== undefined) return `pod rejected, pod has shared init containers but no ${type} available for them`;
    }
  }
  for (const container of pod.spec.containers) count(container);
  const type = isShared ? usedUp() : undefined;
  return type === undefined
    ? undefined
    : `pod rejected, sum of exclusive container ${type} requests equals pod budget, leaving no memory for shared containers`;
}

/** Which containers have memory that is theirs alone. */
export type PodMemoryShare = { readonly container: string; readonly exclusive: boolean };

export function allocatePodMemory(
  policy: MemoryPolicy,
  state: MemoryState,
  pod: Pod,
  hint: TopologyHint,
): readonly PodMemoryShare[] {
  const uid = uidOf(pod);
  if (!policy.manages(pod) || state.pods.has(uid)) return [];
  const total = policy.requestedByPod(pod);
  const requestsOf: RequestsOf = (container) => policy.requested(pod, container);
  const problem = emptySharedMemory(pod, total, requestsOf);
  if (problem !== undefined)
    throw new KubeletError('exhausted', problem, { detail: { reason: 'EmptyPodSharedPoolError' } });
  const numaNodes = policy.choose(state.machine, uid, total, hint);
  const blocksOf = (requests: MemoryRequests): readonly MemoryBlock[] =>
    [...requests].filter(([, size]) => size > 0).map(([type, size]) => ({ numaNodes, type, size }));
  const blocks = blocksOf(total);
  for (const block of blocks) charge(state.machine, block);
  state.setPod(uid, blocks);
  const shares = partition(pod, total, requestsOf);
  for (const [container, { requests }] of shares) state.set(uid, container, blocksOf(requests));
  return [...shares].map(([container, { exclusive }]) => ({ container, exclusive }));
}

type Share = { readonly requests: MemoryRequests; readonly exclusive: boolean };

function partition(pod: Pod, total: MemoryRequests, requestsOf: RequestsOf): ReadonlyMap<string, Share> {
  const shares = new Map<string, Share>();
  let rest = total;
  for (const container of pod.spec.initContainers ?? []) {
    const own = requestsOf(container);
    if (own.size > 0) shares.set(container.name, { requests: own, exclusive: true });
    else if (!isSidecar(container)) shares.set(container.name, { requests: rest, exclusive: false });
    if (isSidecar(container)) rest = without(rest, own);
  }
  for (const container of pod.spec.containers) {
    const own = requestsOf(container);
    if (own.size === 0) continue;
    shares.set(container.name, { requests: own, exclusive: true });
    rest = without(rest, own);
  }
  for (const { name } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers])
    if (!shares.has(name)) shares.set(name, { requests: rest, exclusive: false });
  return shares;
}

const without = (from: MemoryRequests, used: MemoryRequests): MemoryRequests =>
  new Map([...from].map(([type, bytes]) => [type, bytes - (used.get(type) ?? 0)]));
