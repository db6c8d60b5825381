// Makes one hint of what all providers said. Pure.
//
// Upstream forms every combination of one hint per resource and keeps the best, which takes minutes where many hints meet.
// What a combination comes to depends only on its common nodes and on whether all its hints are preferred and name the
// same nodes, and the order among results is total. So preferred results are looked for directly; where there are none, the
// distinct sets of common nodes are built up resource by resource.
import type { HintsByResource, TopologyHint } from './hint-provider.ts';

export type TopologyPolicyName = 'none' | 'best-effort' | 'restricted' | 'single-numa-node';

export type MergeOptions = {
  readonly policy: TopologyPolicyName;
  /** Distances from each node to each node, by id; given with `prefer-closest-numa-nodes`. */
  readonly distances: ReadonlyMap<number, readonly number[]> | undefined;
  readonly nodes: readonly number[];
};

export type MergeResult = { readonly hint: TopologyHint; readonly admit: boolean };

const ANY: TopologyHint = { numaNodes: undefined, preferred: true };
const NOWHERE: TopologyHint = { numaNodes: undefined, preferred: false };

/** `providers`: what each provider said, in their order. */
export function mergeHints(providers: readonly HintsByResource[], options: MergeOptions): MergeResult {
  if (options.policy === 'none') return { hint: NOWHERE, admit: true };
  const isSingle = options.policy === 'single-numa-node';
  const lists = hintLists(providers).map((list) => (isSingle ? list.filter(isSingleOrAny) : list));
  const masks = new NodeMasks(options.nodes, lists);
  const best = preferredBest(lists, masks, options) ?? unpreferredBest(lists, masks, options);
  const merged = best ?? { mask: masks.all, preferred: false };
  const numaNodes = isSingle && merged.mask === masks.all ? undefined : masks.nodes(merged.mask);
  const { preferred } = merged;
  return { hint: { numaNodes, preferred }, admit: options.policy === 'best-effort' || preferred };
}

/** One list per resource; a provider without an opinion counts as one that takes anything. */
function hintLists(providers: readonly HintsByResource[]): readonly (readonly TopologyHint[])[] {
  return providers.flatMap((hints) => {
    const lists = Object.values(hints);
    if (lists.length === 0) return [[ANY]];
    return lists.map((list) => (list === undefined ? [ANY] : list.length === 0 ? [NOWHERE] : list));
  });
}

const isSingleOrAny = ({ numaNodes, preferred }: TopologyHint): boolean =>
  preferred && (numaNodes === undefined || numaNodes.length === 1);

/**
 * Sets of NUMA nodes as bits. The bit is the node's rank, so that a smaller number means lower ids; nodes that only hints
 * know come last.
 */
class NodeMasks {
  readonly #ids: readonly number[];
  readonly #bits: ReadonlyMap<number, bigint>;

  constructor(ids: readonly number[], lists: readonly (readonly TopologyHint[])[]) {
    this.#ids = [...ids].sort((a, b) => a - b);
    const bits = new Map(this.#ids.map((id, rank) => [id, 1n << BigInt(rank)]));
    for (const list of lists)
      for (const { numaNodes = [] } of list)
        for (const id of numaNodes) if (!bits.has(id)) bits.set(id, 1n << BigInt(bits.size));
    this.#bits = bits;
  }

  get all(): bigint {
    return (1n << BigInt(this.#ids.length)) - 1n;
  }

  of(nodes: readonly number[]): bigint {
    let mask = 0n;
    for (const id of nodes) mask |= this.#bits.get(id) ?? 0n;
    return mask;
  }

  nodes(mask: bigint): readonly number[] {
    return this.#ids.filter((_, rank) => ((mask >> BigInt(rank)) & 1n) === 1n);
  }

  count(mask: bigint): number {
    let count = 0;
    for (let rest = mask; rest !== 0n; rest &= rest - 1n) count++;
    return count;
  }
}

type Merged = { readonly mask: bigint; readonly preferred: boolean };
type Lists = readonly (readonly TopologyHint[])[];

/** The best of the combinations whose hints are all preferred and name the same nodes, if they name any. */
function preferredBest(lists: Lists, masks: NodeMasks, options: MergeOptions): Merged | undefined {
  const isNearer = closeness(masks, options);
  const wanted = lists.map((list) => list.filter(({ preferred }) => preferred));
  const takesAny = wanted.map((list) => list.some(({ numaNodes }) => numaNodes === undefined));
  const named = wanted.map(
    (list) => new Set(list.flatMap((h) => (h.numaNodes === undefined ? [] : [masks.of(h.numaNodes)]))),
  );
  const candidates = new Set(
    named.flatMap((set) => [...set]).filter((mask) => named.every((set, at) => takesAny[at] === true || set.has(mask))),
  );
  const results = [...candidates].map((mask) => mask & masks.all).filter((mask) => mask !== 0n);
  if (takesAny.every((any) => any)) results.push(masks.all);
  let best: bigint | undefined;
  for (const mask of results) if (best === undefined || isNearer(mask, best)) best = mask;
  return best === undefined ? undefined : { mask: best, preferred: true };
}

function unpreferredBest(lists: Lists, masks: NodeMasks, options: MergeOptions): Merged | undefined {
  const isNearer = closeness(masks, options);
  const needed = widestNeed(lists);
  const rank = (mask: bigint): number => unpreferredRank(masks.count(mask), needed);
  let best: bigint | undefined;
  for (const mask of commonNodes(lists, masks)) {
    if (mask === 0n) continue;
    const order = best === undefined ? -1 : rank(mask) - rank(best);
    if (best === undefined || order < 0 || (order === 0 && isNearer(mask, best))) best = mask;
  }
  return best === undefined ? undefined : { mask: best, preferred: false };
}

/** What the hints of some combination have in common: all such sets. */
function commonNodes(lists: Lists, masks: NodeMasks): Iterable<bigint> {
  let known = new Set([masks.all]);
  for (const list of lists) {
    const own = new Set(list.map(({ numaNodes }) => (numaNodes === undefined ? masks.all : masks.of(numaNodes))));
    const next = new Set<bigint>();
    for (const before of known) for (const mask of own) next.add(before & mask);
    known = next;
  }
  return known;
}

/** The least number of nodes that some resource needs in any case. */
const widestNeed = (lists: Lists): number =>
  Math.max(
    0,
    ...lists.map((list) => {
      const sizes = list.flatMap(({ numaNodes }) => (numaNodes === undefined ? [] : [numaNodes.length]));
      return sizes.length === 0 ? 0 : Math.min(...sizes);
    }),
  );

/** Exactly what is needed comes first, then less (the more the better), then more (the less the better). */
const unpreferredRank = (size: number, wanted: number): number => {
  if (size === wanted) return 0;
  return size < wanted ? 1 - 1 / (1 + wanted - size) : 1 + size;
};

/** Narrower first, then the lower ids; with distances, among sets of one size the closer nodes first. */
function closeness(masks: NodeMasks, { distances, policy }: MergeOptions): (a: bigint, b: bigint) => boolean {
  const mean = (mask: bigint): number => {
    const nodes = masks.nodes(mask);
    const sum = nodes.reduce((all, from) => {
      const row = distances?.get(from) ?? [];
      return all + nodes.reduce((part, to) => part + (row[to] ?? 0), 0);
    }, 0);
    return sum / nodes.length ** 2;
  };
  const byDistance = distances !== undefined && policy !== 'single-numa-node';
  return (a, b) => {
    if (a === b) return false;
    const [sizeA, sizeB] = [masks.count(a), masks.count(b)];
    if (sizeA !== sizeB) return sizeA < sizeB;
    if (byDistance) {
      const [meanA, meanB] = [mean(a), mean(b)];
      if (meanA !== meanB) return meanA < meanB;
    }
    return a < b;
  };
}
