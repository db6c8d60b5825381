// The Static policy: whose memory is where. Keeps no files and calls nobody; `memory-manager.ts` does.
import { hasPodLevelResources } from '../../core/pod-resources.ts';
import { isSidecar, uidOf, type Container, type Pod } from '../../core/pod.ts';
import { qosClassOf } from '../../core/qos.ts';
import type { NumaNode } from '../../host/topology/machine-topology.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { PodLevelOption } from '../cpu/cpu-requests.ts';
import type { HintsByResource, TopologyHint } from '../topology/hint-provider.ts';
import {
  breaksGroups,
  charge,
  freeOn,
  freshMachine,
  giveBack,
  sameMachine,
  sameNodes,
  type MachineMemory,
  type MemoryBlock,
  type ReservedMemory,
} from './machine-memory.ts';
import { bestHint, hintsByType, hintsOfHeld, memoryHints } from './memory-hints.ts';
import { memoryRequestsOf, memoryRequestsOfPod, type MemoryRequests } from './memory-requests.ts';
import type { MemoryState } from './memory-state.ts';
import { emptySharedMemory } from './pod-partition.ts';
import { Reusable } from './reusable-memory.ts';

const failed = (what: string): KubeletError => new KubeletError('exhausted', `[memorymanager] ${what}`);

export class MemoryPolicy {
  readonly name = 'Static';
  readonly #nodes: readonly NumaNode[];
  readonly #reserved: ReservedMemory;
  readonly #o: PodLevelOption;
  readonly #reusable = new Reusable();

  constructor(nodes: readonly NumaNode[], reserved: ReservedMemory, options: PodLevelOption) {
    const total = [...reserved.values()].reduce((sum, own) => sum + (own.get('memory') ?? 0), 0);
    if (total <= 0) throw new KubeletError('invalid', '[memorymanager] you should specify the system reserved memory');
    this.#nodes = nodes;
    this.#reserved = reserved;
    this.#o = options;
  }

  /** Sets up a fresh state; refuses one that does not fit this machine and these settings. */
  validate(state: MemoryState): void {
    if (state.machine.size === 0) {
      if (state.entries.size > 0)
        throw new KubeletError(
          'invalid',
          '[memorymanager] machine state can not be empty when it has memory assignments',
        );
      return state.setMachine(this.#fresh());
    }
    const expected = this.#fresh();
    for (const [uid, own] of state.entries) {
      const ofPod = state.pods.get(uid) ?? [];
      const held: readonly (readonly [string, readonly MemoryBlock[]])[] = ofPod.length > 0 ? [['', ofPod]] : [...own];
      for (const [container, blocks] of held)
        for (const block of blocks) {
          checkExists(expected, block, uid, container);
          charge(expected, block);
        }
    }
    if (!sameMachine(state.machine, expected))
      throw new KubeletError('invalid', '[memorymanager] the expected machine state is different from the real one');
  }

  /** Whether the policy has to do with the pod at all. */
  manages(pod: Pod): boolean {
    return qosClassOf(pod) === 'Guaranteed' && (this.#o.podLevelManagers || !hasPodLevelResources(pod));
  }

  requested(pod: Pod, container: Container): MemoryRequests {
    return memoryRequestsOf(pod, container, this.#o);
  }

  requestedByPod(pod: Pod): MemoryRequests {
    return memoryRequestsOfPod(pod, this.#o);
  }

  /** Gives the container its memory near the hinted nodes. Returns the blocks when they are new. */
  allocate(state: MemoryState, pod: Pod, container: Container, hint: TopologyHint): readonly MemoryBlock[] | undefined {
    const uid = uidOf(pod);
    const held = state.of(uid, container.name);
    if (held !== undefined) {
      this.#reusable.update(pod, container, held);
      return undefined;
    }
    if (wasReleased(state, pod, container)) return undefined;
    const requests = this.requested(pod, container);
    const numaNodes = this.choose(state.machine, uid, requests, hint);
    const blocks = [...requests].map(([type, size]): MemoryBlock => ({ numaNodes, type, size }));
    for (const block of blocks) {
      const reused = Math.min(block.size, this.#reusable.on(uid, numaNodes, block.type));
      charge(state.machine, { ...block, size: block.size - reused });
    }
    this.#reusable.update(pod, container, blocks);
    state.set(uid, container.name, blocks);
    this.#shrinkInitBlocks(state, pod, container, blocks);
    return blocks;
  }

  /** The nodes to take the memory from: those of the hint if they have it, else more of them or the best there are. */
  choose(machine: MachineMemory, uid: string, requests: MemoryRequests, hint: TopologyHint): readonly number[] {
    const own = (): readonly TopologyHint[] =>
      memoryHints(machine, requests, (nodes, type) => this.#reusable.on(uid, nodes, type));
    let best = hint;
    if (best.numaNodes === undefined) {
      const found = bestHint(own());
      if (found === undefined)
        throw failed('failed to get the default NUMA affinity, no NUMA nodes with enough memory is available');
      if (hint.preferred && !found.preferred) throw failed('failed to find the default preferred hint');
      best = found;
    }
    const nodes = best.numaNodes ?? [];
    if (![...requests].every(([type, bytes]) => freeOn(machine, nodes, type) >= bytes)) {
      const wider = bestHint(own().filter(({ numaNodes = [] }) => nodes.every((id) => numaNodes.includes(id))));
      if (wider === undefined) throw failed('failed to find NUMA nodes to extend the current topology hint');
      if (best.preferred && !wider.preferred) throw failed('failed to find the extended preferred hint');
      best = wider;
    }
    const chosen = best.numaNodes ?? [];
    if (breaksGroups(machine, chosen)) throw failed('preferred hint violates NUMA node allocation');
    return chosen;
  }

  /** The container is gone. */
  release(state: MemoryState, uid: string, container: string): void {
    const held = state.of(uid, container);
    const ofPod = state.pods.get(uid);
    if (held === undefined && ofPod === undefined) return;
    state.delete(uid, container);
    if (ofPod === undefined) return this.#giveBack(state, held ?? []);
    if ((state.entries.get(uid)?.size ?? 0) > 0) return;
    this.#giveBack(state, ofPod);
    state.deletePod(uid);
  }

  /** Undefined: no opinion. */
  hints(state: MemoryState, pod: Pod, container: Container): HintsByResource | undefined {
    if (!this.manages(pod)) return undefined;
    const uid = uidOf(pod);
    const requests = this.requested(pod, container);
    const held = state.of(uid, container.name);
    if (wasReleased(state, pod, container)) return undefined;
    return held === undefined ? this.#hints(state, uid, requests) : hintsOfHeld(held, requests);
  }

  podHints(state: MemoryState, pod: Pod): HintsByResource | undefined {
    if (!this.manages(pod)) return undefined;
    const uid = uidOf(pod);
    const requests = this.requestedByPod(pod);
    if (requests.size === 0) return undefined;
    if (hasPodLevelResources(pod) && emptySharedMemory(pod, requests, (c) => this.requested(pod, c)) !== undefined)
      return Object.fromEntries([...requests.keys()].map((type) => [type, []]));
    for (const { name } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
      const held = state.of(uid, name);
      if (held !== undefined) return hintsOfHeld(held, requests);
    }
    return this.#hints(state, uid, requests);
  }

  #hints(state: MemoryState, uid: string, requests: MemoryRequests): HintsByResource {
    const reusable = (nodes: readonly number[], type: string): number => this.#reusable.on(uid, nodes, type);
    return hintsByType(memoryHints(state.machine, requests, reusable), requests);
  }

  #fresh(): MachineMemory {
    return freshMachine(this.#nodes, this.#reserved);
  }

  #giveBack(state: MemoryState, blocks: readonly MemoryBlock[]): void {
    for (const block of blocks) giveBack(state.machine, block);
    state.setMachine(state.machine);
  }

  /** What was taken over from init containers is theirs no longer, so that the sum over the pod stays right. */
  #shrinkInitBlocks(state: MemoryState, pod: Pod, container: Container, blocks: readonly MemoryBlock[]): void {
    const uid = uidOf(pod);
    for (const { type, numaNodes, size } of blocks) {
      let left = size;
      for (const init of pod.spec.initContainers ?? []) {
        if (init.name === container.name || left === 0) break;
        const held = isSidecar(init) ? undefined : state.of(uid, init.name);
        if (held === undefined || held.length === 0) continue;
        const shrunk = held.map((block) => {
          if (block.type !== type || !sameNodes(block.numaNodes, numaNodes)) return block;
          const used = Math.min(block.size, left);
          left -= used;
          return { ...block, size: block.size - used };
        });
        state.set(uid, init.name, shrunk);
      }
    }
  }
}

/**
 * Whether it is an init container that gave its memory back when a later one started: that one still has its own. A pod that
 * is admitted once more after a restart of the agent needs no memory for it, and may not find any.
 */
function wasReleased(state: MemoryState, pod: Pod, { name }: Container): boolean {
  const { initContainers = [], containers } = pod.spec;
  const at = initContainers.findIndex((init) => init.name === name && !isSidecar(init));
  if (at < 0 || state.of(uidOf(pod), name) !== undefined) return false;
  return [...initContainers.slice(at + 1), ...containers].some((c) => state.of(uidOf(pod), c.name) !== undefined);
}

function checkExists(machine: MachineMemory, block: MemoryBlock, uid: string, container: string): void {
  const problem = (what: string): KubeletError =>
    new KubeletError(
      'invalid',
      `[memorymanager] (pod: ${uid}, container: ${container}) the memory assignment uses ${what}`,
    );
  for (const id of block.numaNodes) {
    const node = machine.get(id);
    if (node === undefined) throw problem('the NUMA that does not exist');
    if (!node.tables.has(block.type)) throw problem('memory resource that does not exist');
  }
}
