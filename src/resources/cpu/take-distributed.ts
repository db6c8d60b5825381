// Chooses CPUs in equal parts from as few NUMA nodes as can hold them, so that what is left on all nodes stays as even as
// possible (`distribute-cpus-across-numa`). Falls back to packed where no even distribution exists. Pure.
import type { CpuSet } from '../../core/cpuset.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { CpuTopology } from './cpu-topology.ts';
import { FreeCpus, type CpuOrder } from './free-cpus.ts';
import { visitCombinations, type SharedCombination } from './shared-combinations.ts';
import { checkEnough, takePacked } from './take-packed.ts';

/** `group`: CPUs are handed out in multiples of this. */
export function takeDistributed(
  topology: CpuTopology,
  available: CpuSet,
  count: number,
  group: number,
  order: CpuOrder,
): CpuSet {
  const options = { order, uncore: false };
  if (count % group !== 0) return takePacked(topology, available, count, options);
  const free = new FreeCpus(topology, available, count);
  if (count < 1) return free.taken;
  checkEnough(free);
  const numas = free.numas();
  const groupsPerNuma = Math.ceil(Math.ceil(topology.cpus.size / group) / topology.counts.numa);
  const groups = Math.ceil(count / group);
  for (let size = Math.ceil(groups / groupsPerNuma); size <= Math.min(groups, numas.length); size++) {
    const best = bestSplit({ free, numas, count, group }, size);
    if (best !== undefined) return takeSplit(free, best, group, order);
  }
  return takePacked(topology, available, count, options);
}

type Search = {
  readonly free: FreeCpus;
  readonly numas: readonly number[];
  readonly count: number;
  readonly group: number;
};

type Split = {
  /** The nodes that give the same number of CPUs each. */
  readonly nodes: SharedCombination;
  /** The nodes that give one more group in turn. */
  readonly extra: SharedCombination | undefined;
  /** How uneven the free CPUs are afterwards. */
  readonly score: number;
};

const evenShare = (count: number, nodes: number, group: number): number =>
  Math.floor(Math.floor(count / nodes) / group) * group;

function bestSplit(search: Search, size: number): Split | undefined {
  let best: Split | undefined;
  visitCombinations(search.numas, size, (nodes) => {
    if (best?.score === 0) return false;
    const split = splitOver(search, nodes);
    if (split !== undefined && split.score < (best?.score ?? Infinity)) best = split;
    return true;
  });
  return best;
}

function splitOver({ free, numas, count, group }: Search, nodes: SharedCombination): Split | undefined {
  const chosen = nodes.values();
  const freeIn = (numa: number): number => free.in('numa', numa).size;
  if (chosen.reduce((sum, numa) => sum + Math.floor(freeIn(numa) / group) * group, 0) < count) return undefined;
  const share = evenShare(count, chosen.length, group);
  if (chosen.some((numa) => freeIn(numa) < share)) return undefined;
  const after = new Map(numas.map((numa) => [numa, freeIn(numa) - (chosen.includes(numa) ? share : 0)]));
  const rest = count - share * chosen.length;
  if (rest === 0) return { nodes, extra: undefined, score: deviation([...after.values()]) };
  const able = chosen.filter((numa) => freeIn(numa) - share >= group);
  const extra = bestExtra(after, able, rest, group);
  return extra === undefined ? undefined : { nodes, ...extra };
}

/** Which of the able nodes give the remaining groups. */
function bestExtra(
  after: ReadonlyMap<number, number>,
  able: readonly number[],
  rest: number,
  group: number,
): { readonly extra: SharedCombination; readonly score: number } | undefined {
  let best: { extra: SharedCombination; score: number } | undefined;
  for (let size = able.length; size >= 1; size--)
    visitCombinations(able, size, (extra) => {
      const left = dealOut(after, extra.values(), rest, group);
      const score = left === undefined ? Infinity : deviation(left);
      if (score < (best?.score ?? Infinity)) best = { extra, score };
      return true;
    });
  return best;
}

/** What every node has left when `rest` is dealt out in turn, or undefined when the nodes have not got it. */
function dealOut(
  after: ReadonlyMap<number, number>,
  nodes: readonly number[],
  rest: number,
  group: number,
): readonly number[] | undefined {
  const left = new Map(after);
  let remaining = rest;
  while (remaining > 0) {
    const before = remaining;
    for (const numa of nodes) {
      const has = left.get(numa) ?? 0;
      if (remaining === 0 || has < group) continue;
      left.set(numa, has - group);
      remaining -= group;
    }
    if (remaining === before) return undefined;
  }
  return [...left.values()];
}

function takeSplit(free: FreeCpus, { nodes, extra }: Split, group: number, order: CpuOrder): CpuSet {
  const chosen = nodes.values();
  const share = evenShare(free.need, chosen.length, group);
  let rest = free.need - share * chosen.length;
  for (const numa of chosen) takeFrom(free, numa, share, order);
  const extras = extra?.values() ?? [];
  for (let before = Infinity; rest > 0 && rest < before;) {
    before = rest;
    for (const numa of extras) {
      if (rest === 0 || free.in('numa', numa).size < group) continue;
      takeFrom(free, numa, group, order);
      rest -= group;
    }
  }
  if (free.need > 0)
    throw new KubeletError('internal', `accounting error, not enough CPUs allocated, remaining: ${free.need}`);
  return free.taken;
}

function takeFrom(free: FreeCpus, numa: number, count: number, order: CpuOrder): void {
  const available = free.in('numa', numa);
  if (available.size >= count) free.take(takePacked(free.topology, available, count, { order, uncore: false }));
}

/** Standard deviation, with mean and result rounded to three decimals. */
function deviation(values: readonly number[]): number {
  const mean = rounded(values.reduce((sum, value) => sum + value, 0) / values.length);
  return rounded(Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length));
}

const rounded = (value: number): number => Math.round(value * 1000) / 1000;
