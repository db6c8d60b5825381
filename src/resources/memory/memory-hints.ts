// From which NUMA nodes memory of all requested types together could come. Pure.
import type { HintsByResource, TopologyHint } from '../topology/hint-provider.ts';
import { numaCombinations } from '../../core/numa-combinations.ts';
import { allocatableOn, breaksGroups, freeOn, type MachineMemory, type MemoryBlock } from './machine-memory.ts';
import type { MemoryRequests } from './memory-requests.ts';

/** What the pod's finished init containers left on exactly these nodes. */
export type ReusableMemory = (nodes: readonly number[], type: string) => number;

export function memoryHints(
  machine: MachineMemory,
  requests: MemoryRequests,
  reusable: ReusableMemory,
): readonly TopologyHint[] {
  const ids = [...machine.keys()].sort((a, b) => a - b);
  const asked = [...requests];
  let smallest = ids.length;
  const fitting: (readonly number[])[] = [];
  for (const nodes of numaCombinations(ids)) {
    if (!asked.every(([type, bytes]) => allocatableOn(machine, nodes, type) >= bytes)) continue;
    smallest = Math.min(smallest, nodes.length);
    const isGrouped = nodes.length === 1 && nodes.some((id) => (machine.get(id)?.cells ?? []).length > 1);
    if (isGrouped || breaksGroups(machine, nodes)) continue;
    if (asked.every(([type, bytes]) => freeOn(machine, nodes, type) + reusable(nodes, type) >= bytes))
      fitting.push(nodes);
  }
  return fitting.map((numaNodes) => ({ numaNodes, preferred: numaNodes.length === smallest }));
}

/** The same hints for every type; no type at all when no nodes fit, which counts as no opinion. */
export const hintsByType = (hints: readonly TopologyHint[], requests: MemoryRequests): HintsByResource =>
  hints.length === 0 ? {} : Object.fromEntries([...requests.keys()].map((type) => [type, hints]));

/** Hints that lead to what is held already; undefined when that is not what is asked for. */
export function hintsOfHeld(blocks: readonly MemoryBlock[], requests: MemoryRequests): HintsByResource | undefined {
  if (blocks.length !== requests.size) return undefined;
  if (blocks.some(({ type, size }) => requests.get(type) !== size)) return undefined;
  return Object.fromEntries(blocks.map(({ type, numaNodes }) => [type, [{ numaNodes, preferred: true }]]));
}

/** Preferred before not, then fewer nodes, then lower ids. */
export function bestHint(hints: readonly TopologyHint[]): TopologyHint | undefined {
  let best: TopologyHint | undefined;
  for (const hint of hints) {
    if (best === undefined || (hint.preferred && !best.preferred)) best = hint;
    else if (hint.preferred === best.preferred && isNarrower(hint.numaNodes ?? [], best.numaNodes ?? [])) best = hint;
  }
  return best;
}

/** Fewer nodes; of equally many those whose highest differing id is lower. */
function isNarrower(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return a.length < b.length;
  return highestOnlyIn(a, b) < highestOnlyIn(b, a);
}

const highestOnlyIn = (ids: readonly number[], others: readonly number[]): number =>
  Math.max(-1, ...ids.filter((id) => !others.includes(id)));
