// Combinations in the order upstream visits them, kept in arrays that grow as Go's slices do. Upstream remembers the best
// combination by reference while the search goes on; at sizes where a slice has room to spare, later combinations with
// the same beginning write over its end. The choice of CPUs depends on it, so it is reproduced here.

/** A combination; its content may change until the search it comes from is over. */
export type SharedCombination = { values(): readonly number[] };

type Slice = { readonly backing: number[]; readonly capacity: number; readonly length: number };

const EMPTY: Slice = { backing: [], capacity: 0, length: 0 };

function append({ backing, capacity, length }: Slice, value: number): Slice {
  const hasRoom = length < capacity;
  const target = hasRoom ? backing : backing.slice(0, length);
  target[length] = value;
  return { backing: target, capacity: hasRoom ? capacity : Math.max(1, capacity * 2), length: length + 1 };
}

/** Visits the combinations of `size` of `items` in order until `visit` returns false. */
export function visitCombinations(
  items: readonly number[],
  size: number,
  visit: (combination: SharedCombination) => boolean,
): void {
  const extend = (prefix: Slice, start: number): boolean => {
    const missing = size - prefix.length;
    if (missing === 0) return visit({ values: () => prefix.backing.slice(0, prefix.length) });
    for (const [offset, item] of items.slice(start, items.length - missing + 1).entries())
      if (!extend(append(prefix, item), start + offset + 1)) return false;
    return true;
  };
  if (size >= 1) extend(EMPTY, 0);
}
