// From one look to the next: since when thresholds are crossed, which pressures show, and which thresholds call for action.
import { SIGNALS, type Observations, type Pressure } from './signals.ts';
import { toNumber } from '../core/quantity.ts';
import { amountIn, isHard, metBy, type Threshold } from './thresholds.ts';

export type PressureState = {
  readonly firstMetMs: ReadonlyMap<Threshold, number>;
  readonly lastSeenMs: ReadonlyMap<Pressure, number>;
  /** Met at the last look, for long enough. */
  readonly met: readonly Threshold[];
  readonly observations: Observations;
};

export const CALM: PressureState = { firstMetMs: new Map(), lastSeenMs: new Map(), met: [], observations: new Map() };

export type Look = {
  readonly state: PressureState;
  readonly pressures: readonly Pressure[];
  /** Call for something to be reclaimed now, most urgent first. */
  readonly urgent: readonly Threshold[];
};

const ORDER: readonly Pressure[] = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];

export function look(
  before: PressureState,
  thresholds: readonly Threshold[],
  observations: Observations,
  nowMs: number,
  transitionMs: number,
): Look {
  const met = new Set([...metBy(thresholds, observations, false), ...metBy(before.met, observations, true)]);
  const firstMetMs = new Map([...met].map((t) => [t, before.firstMetMs.get(t) ?? nowMs]));
  const lastSeenMs = new Map(before.lastSeenMs);
  for (const t of met) lastSeenMs.set(SIGNALS[t.signal].pressure, nowMs);
  const pressures = ORDER.filter((p) => {
    const seen = lastSeenMs.get(p);
    return seen !== undefined && (seen === nowMs || nowMs - seen < transitionMs);
  });
  const lasting = [...met].filter((t) => nowMs - (firstMetMs.get(t) ?? nowMs) >= t.graceMs);
  const urgent = lasting
    .filter((t) => advanced(t, before.observations, observations))
    .sort((a, b) => Number(isMemory(b)) - Number(isMemory(a)));
  return { state: { firstMetMs, lastSeenMs, met: lasting, observations }, pressures, urgent };
}

/** Of the machine or of all pods together: either ends in kills by the kernel. */
const isMemory = ({ signal }: Threshold): boolean => SIGNALS[signal].resource === 'memory';

/** Nothing is decided twice on one measurement. One is new also where the machine's clock was set back before it. */
function advanced({ signal }: Threshold, before: Observations, now: Observations): boolean {
  const [was, is] = [before.get(signal), now.get(signal)];
  return was === undefined || (is !== undefined && is.atMs !== was.atMs);
}

/** A threshold and what was measured, for people. */
export type SignalReading = {
  readonly signal: string;
  readonly available: number;
  readonly capacity: number;
  readonly threshold: number;
  readonly unit: 'bytes' | 'count';
  readonly hard: boolean;
  readonly met: boolean;
};

export const readingsOf = (
  thresholds: readonly Threshold[],
  { observations, met }: Pick<PressureState, 'observations' | 'met'>,
): readonly SignalReading[] =>
  thresholds.flatMap((t) => {
    const seen = observations.get(t.signal);
    if (seen === undefined) return [];
    const { resource } = SIGNALS[t.signal];
    return [
      {
        signal: t.signal,
        available: toNumber(seen.available),
        capacity: Number(seen.capacity),
        threshold: toNumber(amountIn(t.value, seen.capacity)),
        unit: resource === 'memory' || resource === 'ephemeral-storage' ? 'bytes' : 'count',
        hard: isHard(t),
        met: met.includes(t),
      } as const,
    ];
  });

/** How long a pod may take: a hard threshold leaves it a second. */
export const graceSecondsFor = (threshold: Threshold, maxSeconds: number, podSeconds: number): number =>
  isHard(threshold) ? 1 : Math.min(maxSeconds, podSeconds);
