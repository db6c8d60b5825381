// Finds things of a list by name. A pod may have tens of thousands of containers, each of which is looked up in lists as long:
// a long list is indexed once. For lists whose members do not change.

type Named = { readonly name: string };

/** A search through so few takes no longer. */
const FEW = 32;
const indexes = new WeakMap<readonly Named[], Map<string, Named[]>>();

/** In their order. */
export function allNamed<T extends Named>(list: readonly T[], name: string): readonly T[] {
  if (list.length <= FEW) return list.filter((one) => one.name === name);
  let index = indexes.get(list);
  if (index === undefined) indexes.set(list, (index = Map.groupBy<string, Named>(list, (one) => one.name)));
  return (index.get(name) ?? []) as T[];
}

/** The first. */
export const named = <T extends Named>(list: readonly T[], name: string): T | undefined =>
  list.length <= FEW ? list.find((one) => one.name === name) : allNamed(list, name)[0];
