// Facts that follow from the configuration and the machine by a rule. Pure.
import type { CrashBackoffOptions } from './crash-backoff.ts';
import type { RuntimeFacts } from './facts.ts';

/** What decides whether containers may swap. */
export const swapFactsOf = (given: {
  readonly swapBehavior: string;
  readonly cgroupVersion: 1 | 2;
  readonly swapBytes: number;
}): Pick<RuntimeFacts, 'cgroupVersion' | 'swapBehavior' | 'swapAccounting'> => ({
  cgroupVersion: given.cgroupVersion,
  swapBehavior: given.swapBehavior === 'LimitedSwap' ? 'LimitedSwap' : 'NoSwap',
  swapAccounting: given.cgroupVersion === 1 || given.swapBytes > 0,
});

/** `reduced`: gate `ReduceDefaultCrashLoopBackOffDecay`; `maxMs`: `crashLoopBackOff.maxContainerRestartPeriod`. */
export function crashBackoffOf(reduced: boolean, maxMs: number | undefined): CrashBackoffOptions {
  const usual = reduced ? { initialMs: 1000, maxMs: 60_000 } : { initialMs: 10_000, maxMs: 300_000 };
  return { ...usual, maxMs: maxMs ?? usual.maxMs };
}

/** `2MB`, `1GB`: the way the runtime names huge page sizes. */
export function pageSizeName(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let [size, unit] = [bytes, 0];
  while (size >= 1024 && size % 1024 === 0) {
    size /= 1024;
    unit++;
  }
  return `${size}${units[unit] ?? ''}`;
}
