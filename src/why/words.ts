// Numbers and names in a sentence for people. Pure.
import type { KubeEvent } from '../core/node.ts';
import { parseTimeMs } from '../core/time.ts';
import type { PodFacts } from './facts.ts';

/** `17 s`, `3 min 20 s`, `2 h 5 min`, `4 d 3 h`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [d, h, m, s] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ];
  const two = (a: string, b: number, unit: string): string => (b === 0 ? a : `${a} ${b} ${unit}`);
  if (d > 0) return two(`${d} d`, h, 'h');
  if (h > 0) return two(`${h} h`, m, 'min');
  return m > 0 ? two(`${m} min`, s, 's') : `${s} s`;
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** `734 B`, `5.2 MB`; powers of 1000, as registries and disks count. */
export function bytes(count: number): string {
  let [value, unit] = [count, 0];
  while (value >= 999.5 && unit < UNITS.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${unit === 0 || value >= 99.5 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit] ?? ''}`;
}

export const quote = (text: string): string => JSON.stringify(text);

/** `, next try in 17 s`; nothing where no time is set. */
export function nextTry({ worker, nowMs }: PodFacts): string {
  if (worker?.nextRunMs === undefined || worker.busySinceMs !== undefined) return '';
  return worker.nextRunMs - nowMs < 1000 ? ', next try now' : `, next try in ${span(worker.nextRunMs - nowMs)}`;
}

/** To spread into a `Why`. */
export const retryOf = ({ worker }: PodFacts): { readonly nextRetryMs?: number } =>
  worker?.nextRunMs === undefined || worker.busySinceMs !== undefined ? {} : { nextRetryMs: worker.nextRunMs };

/** `event Failed (12 times): …` */
export const eventText = (event: KubeEvent): string =>
  `event ${event.reason ?? ''}${(event.count ?? 1) > 1 ? ` (${event.count} times)` : ''}: ${event.message ?? ''}`;

/** The newest event with one of these reasons. */
export const lastEvent = ({ events }: PodFacts, ...reasons: readonly string[]): KubeEvent | undefined =>
  events.findLast((e) => reasons.includes(e.reason ?? ''));

export const eventMs = (event: KubeEvent | undefined): number =>
  event?.lastTimestamp ? parseTimeMs(event.lastTimestamp) : 0;

/** Cut where it stops being one sentence's worth. */
export const shortly = (text: string, max = 240): string => (text.length <= max ? text : `${text.slice(0, max - 1)}…`);
