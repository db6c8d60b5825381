// All sets of NUMA nodes in the order upstream visits them: by size, then by the nodes' ids. Pure.

export function* numaCombinations(ids: readonly number[]): Iterable<readonly number[]> {
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
