// Mount options in a fixed order, each once.
export const optionsOf = (given: readonly string[], readOnly: boolean): string[] =>
  [...new Set([...given, ...(readOnly ? ['ro'] : [])])].sort();
