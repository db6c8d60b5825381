// Sets of CPU numbers in the kernel's list notation, `0-3,8,10-11`.

export type CpuSet = ReadonlySet<number>;

const MAX_CPU = 65_536;

/** The set, or undefined for text that is no CPU list. Empty text is the empty set. */
export function tryParseCpuSet(text: string): CpuSet | undefined {
  const out = new Set<number>();
  if (text === '') return out;
  for (const part of text.split(',')) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (match === null) return undefined;
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    if (last < first || last > MAX_CPU) return undefined;
    for (let cpu = first; cpu <= last; cpu++) out.add(cpu);
  }
  return out;
}

/** The shortest list notation of the set. */
export function formatCpuSet(set: CpuSet): string {
  const sorted = [...set].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let end = i;
    while (end + 1 < sorted.length && sorted[end + 1] === (sorted[end] ?? 0) + 1) end++;
    parts.push(end === i ? `${sorted[i]}` : `${sorted[i]}-${sorted[end]}`);
    i = end + 1;
  }
  return parts.join(',');
}

export const isCpuSubset = (inner: CpuSet, outer: CpuSet): boolean => inner.isSubsetOf(outer);
