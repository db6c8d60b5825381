// All sets of NUMA nodes in the order upstream visits them: by size, then by the nodes' ids. Pure.
import { Lru } from '../lib/lru.ts';

/** Up to so many nodes the sets are kept: every container that is admitted is held against all of them. */
const KEPT_NODES = 8;
const kept = new Lru<string, readonly (readonly number[])[]>(4);

export function numaCombinations(ids: readonly number[]): Iterable<readonly number[]> {
  if (ids.length > KEPT_NODES) return combinationsOf(ids);
  const key = ids.join();
  const sets = kept.get(key) ?? [...combinationsOf(ids)];
  kept.set(key, sets);
  return sets;
}

function* combinationsOf(ids: readonly number[]): Iterable<readonly number[]> {
  for (let size = 1; size <= ids.length; size++) yield* ofSize(ids, size);
}

function* ofSize(ids: readonly number[], size: number): Iterable<readonly number[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (const [at, id] of ids.slice(0, ids.length - size + 1).entries())
    for (const rest of ofSize(ids.slice(at + 1), size - 1)) yield [id, ...rest];
}
