// Thresholds as configured, and whether they are crossed. Pure.
import { durationMs } from '../core/duration.ts';
import { addQuantities, compareQuantities, fromUnits, quantity, type Quantity } from '../core/quantity.ts';
import type { DiskLayout } from './figures.ts';
import { isSignal, type Observation, type Observations, type Signal } from './signals.ts';

/** An amount, or a share of the capacity: a 32-bit float, as upstream's is. */
export type Amount = { readonly quantity: Quantity } | { readonly share: number };

export type Threshold = {
  readonly signal: Signal;
  readonly value: Amount;
  /** 0: hard. */
  readonly graceMs: number;
  /** Once crossed, this much more than the threshold must be available again. */
  readonly minReclaim?: Amount;
};

export type ThresholdConfig = {
  readonly evictionHard: Readonly<Record<string, string>>;
  readonly evictionSoft: Readonly<Record<string, string>>;
  readonly evictionSoftGracePeriod: Readonly<Record<string, string>>;
  readonly evictionMinimumReclaim: Readonly<Record<string, string>>;
};

export const isHard = (threshold: Threshold): boolean => threshold.graceMs === 0;

/** The configuration was checked before. 0% and 100% switch a threshold off. */
export function parseThresholds(config: ThresholdConfig, enforcesAllocatable: boolean): readonly Threshold[] {
  const parse = (map: Readonly<Record<string, string>>, graceOf: (signal: string) => number): Threshold[] =>
    Object.entries(map).flatMap(([signal, text]) => {
      const reclaim = config.evictionMinimumReclaim[signal];
      const off = text.endsWith('%') && [0, 100].includes(Number(text.slice(0, -1)));
      if (!isSignal(signal) || off) return [];
      const minReclaim = reclaim === undefined ? {} : { minReclaim: amountOf(reclaim) };
      return [{ signal, value: amountOf(text), graceMs: graceOf(signal), ...minReclaim }];
    });
  const hard = parse(config.evictionHard, () => 0);
  const soft = parse(config.evictionSoft, (signal) => durationMs(config.evictionSoftGracePeriod[signal] ?? '0'));
  const allocatable = enforcesAllocatable
    ? hard
        .filter((t) => t.signal === 'memory.available')
        .map((t): Threshold => ({ ...t, signal: 'allocatableMemory.available' }))
    : [];
  return [...hard, ...soft, ...allocatable];
}

function amountOf(text: string): Amount {
  if (!text.endsWith('%')) return { quantity: quantity(text) };
  return { share: Math.fround(Math.fround(Number(text.slice(0, -1))) / 100) };
}

/** Nobody sets thresholds for writable layers: they follow those of the filesystem that holds them. */
export function withContainerFs(thresholds: readonly Threshold[], layout: DiskLayout): readonly Threshold[] {
  const model = layout === 'dedicated' ? 'imagefs' : 'nodefs';
  const own = thresholds.filter((t) => !t.signal.startsWith('containerfs.'));
  const copies = own.flatMap((t): Threshold[] => {
    if (t.signal === `${model}.available`) return [{ ...t, signal: 'containerfs.available' }];
    if (t.signal === `${model}.inodesFree`) return [{ ...t, signal: 'containerfs.inodesFree' }];
    return [];
  });
  return [...own, ...copies];
}

export const amountIn = (amount: Amount, capacity: bigint): Quantity =>
  'quantity' in amount ? amount.quantity : fromUnits(Math.trunc(Number(capacity) * amount.share), 'BinarySI');

/** Those with less available than they ask for; with `reclaimed`, than they ask for to be satisfied again. */
export const metBy = (
  thresholds: readonly Threshold[],
  observations: Observations,
  reclaimed: boolean,
): readonly Threshold[] =>
  thresholds.filter((t) => {
    const seen = observations.get(t.signal);
    return seen !== undefined && compareQuantities(wantedBy(t, seen, reclaimed), seen.available) > 0;
  });

function wantedBy({ value, minReclaim }: Threshold, { capacity }: Observation, reclaimed: boolean): Quantity {
  const wanted = amountIn(value, capacity);
  return reclaimed && minReclaim !== undefined ? addQuantities(wanted, amountIn(minReclaim, capacity)) : wanted;
}
