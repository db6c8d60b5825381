// How far a rollout may go in one step. Pure.
export type SetSize = { readonly name: string; readonly replicas: number; readonly available: number };
export type Limits = { readonly maxSurge: number; readonly maxUnavailable: number };

/** `25%` or `2` of `total`; surge rounds up, unavailability down. */
export function resolveCount(value: unknown, total: number, roundUp: boolean): number {
  if (typeof value === 'number') return value;
  const match = typeof value === 'string' ? /^(\d+)%$/.exec(value) : null;
  if (match === null) return 0;
  const exact = (Number(match[1]) * total) / 100;
  return roundUp ? Math.ceil(exact) : Math.floor(exact);
}

export function limitsOf(surge: unknown, unavailable: unknown, replicas: number): Limits {
  const maxSurge = resolveCount(surge, replicas, true);
  const maxUnavailable = resolveCount(unavailable, replicas, false);
  return maxSurge === 0 && maxUnavailable === 0 ? { maxSurge, maxUnavailable: 1 } : { maxSurge, maxUnavailable };
}

/** The next size of the new set and of each old one. */
export function nextSizes(
  wanted: number,
  fresh: SetSize,
  old: readonly SetSize[],
  limits: Limits,
): { readonly fresh: number; readonly old: ReadonlyMap<string, number> } {
  const total = fresh.replicas + old.reduce((sum, s) => sum + s.replicas, 0);
  const room = Math.max(0, wanted + limits.maxSurge - total);
  const next = fresh.replicas > wanted ? wanted : Math.min(wanted, fresh.replicas + room);
  const sizes = new Map(old.map((s) => [s.name, s.replicas]));
  const available = fresh.available + old.reduce((sum, s) => sum + s.available, 0);
  // What is not available anyway can go at once, as far as the new set's own gaps are counted as missing.
  let broken = Math.max(0, total - (wanted - limits.maxUnavailable) - (fresh.replicas - fresh.available));
  for (const set of old) {
    const gone = Math.min(broken, set.replicas - set.available);
    sizes.set(set.name, set.replicas - gone);
    broken -= gone;
  }
  let spare = Math.max(0, available - (wanted - limits.maxUnavailable));
  for (const set of old) {
    const left = sizes.get(set.name) ?? 0;
    const gone = Math.min(spare, Math.min(left, set.available));
    sizes.set(set.name, left - gone);
    spare -= gone;
  }
  return { fresh: next, old: sizes };
}
