// Makes one hint of what all providers said. Pure.
//
// Upstream forms every combination of one hint per resource and keeps the best. What a combination comes to depends only on
// its common nodes and on whether all its hints are preferred and name the same nodes, and the order among results is total:
// so the distinct results are built up resource by resource, which takes milliseconds where combinations take minutes.
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
  const masks = new NodeMasks(options.nodes);
  const best = bestOf(combinationsOf(lists, masks), lists, masks, options);
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

/** Sets of NUMA nodes as bits; the bit is the node's rank, so that a smaller number means lower ids. */
class NodeMasks {
  readonly #ids: readonly number[];
  readonly #bits: ReadonlyMap<number, number>;

  constructor(ids: readonly number[]) {
    this.#ids = [...ids].sort((a, b) => a - b);
    this.#bits = new Map(this.#ids.map((id, rank) => [id, 2 ** rank]));
  }

  get all(): number {
    return 2 ** this.#ids.length - 1;
  }

  of(nodes: readonly number[]): number {
    return nodes.reduce((mask, id) => mask | (this.#bits.get(id) ?? 0), 0);
  }

  nodes(mask: number): readonly number[] {
    return this.#ids.filter((_, rank) => (mask & (2 ** rank)) !== 0);
  }

  count(mask: number): number {
    let count = 0;
    for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
    return count;
  }
}

type Combination = {
  /** The nodes that all hints have in common. */
  readonly mask: number;
  readonly preferred: boolean;
  /** The nodes that all hints named so far; undefined before one named any. */
  readonly named: string | undefined;
};

function combinationsOf(lists: readonly (readonly TopologyHint[])[], masks: NodeMasks): readonly Combination[] {
  let known: readonly Combination[] = [{ mask: masks.all, preferred: true, named: undefined }];
  for (const list of lists) {
    const next = new Map<string, Combination>();
    for (const before of known)
      for (const hint of list) {
        const after = extended(before, hint, masks);
        // What is not preferred stays so, whatever it was made of.
        next.set(`${after.mask} ${after.preferred ? (after.named ?? '') : 'x'}`, after);
      }
    known = [...next.values()];
  }
  return known;
}

function extended(before: Combination, hint: TopologyHint, masks: NodeMasks): Combination {
  const preferred = before.preferred && hint.preferred;
  if (hint.numaNodes === undefined) return { ...before, preferred };
  const own = hint.numaNodes.join();
  return {
    mask: before.mask & masks.of(hint.numaNodes),
    preferred: preferred && (before.named ?? own) === own,
    named: before.named ?? own,
  };
}

type Merged = { readonly mask: number; readonly preferred: boolean };

function bestOf(
  combinations: readonly Combination[],
  lists: readonly (readonly TopologyHint[])[],
  masks: NodeMasks,
  options: MergeOptions,
): Merged | undefined {
  const isNearer = closeness(masks, options);
  const wanted = widestNeed(lists);
  const isBetter = (a: Merged, b: Merged): boolean => {
    if (a.preferred !== b.preferred) return a.preferred;
    if (a.preferred) return isNearer(a.mask, b.mask);
    const [sizeA, sizeB] = [masks.count(a.mask), masks.count(b.mask)];
    const order = unpreferredRank(sizeA, wanted) - unpreferredRank(sizeB, wanted);
    return order === 0 ? isNearer(a.mask, b.mask) : order < 0;
  };
  let best: Merged | undefined;
  for (const each of combinations) if (each.mask !== 0 && (best === undefined || isBetter(each, best))) best = each;
  return best;
}

/** The least number of nodes that some resource needs in any case. */
const widestNeed = (lists: readonly (readonly TopologyHint[])[]): number =>
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
function closeness(masks: NodeMasks, { distances, policy }: MergeOptions): (a: number, b: number) => boolean {
  const mean = (mask: number): number => {
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
