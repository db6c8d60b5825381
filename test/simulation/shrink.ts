// Cuts a failing run down: leaves out actions, halves first, then less and less, as long as the same invariant is violated.
import type { Action } from './workload/actions.ts';

export type Fails = (actions: readonly Action[]) => Promise<boolean>;

/** `budget` runs at most; what is left then may not be the shortest, but fails. */
export async function shrink(all: readonly Action[], fails: Fails, budget: number): Promise<readonly Action[]> {
  let kept = all;
  let runs = 0;
  for (let parts = 2; kept.length > 1 && runs < budget;) {
    const size = Math.ceil(kept.length / parts);
    let hasShrunk = false;
    for (let from = 0; from < kept.length && runs < budget;) {
      const without = [...kept.slice(0, from), ...kept.slice(from + size)];
      runs++;
      if (without.length > 0 && (await fails(without))) {
        kept = without;
        hasShrunk = true;
      } else from += size;
    }
    if (size === 1 && !hasShrunk) break;
    parts = hasShrunk ? Math.max(2, parts - 1) : Math.min(kept.length, parts * 2);
  }
  return kept;
}
