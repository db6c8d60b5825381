// Ages and durations as kubectl prints them, and the column type that uses them.
import { parseTimeMs } from '../../core/time.ts';
import type { ApiObject } from './objects.ts';

export type Column = {
  readonly name: string;
  /** 0 is always shown, 1 with `-o wide`. */
  readonly priority: 0 | 1;
  readonly type: 'string' | 'integer';
  readonly cell: (object: ApiObject, nowMs: number) => unknown;
};

/** Age as kubectl prints it: `45s`, `3m20s`, `5h`, `2d4h`, `40d`, `2y`. */
export function humanDuration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return withRest(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return withRest(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (hours < 192) return withRest(days, 'd', hours % 24, 'h');
  if (days < 730) return `${days}d`;
  const years = Math.floor(days / 365);
  return years < 8 ? withRest(years, 'y', days % 365, 'd') : `${years}y`;
}

const withRest = (a: number, unit: string, b: number, restUnit: string): string =>
  b === 0 ? `${a}${unit}` : `${a}${unit}${b}${restUnit}`;

export const ageOf = (stamp: string | null | undefined, nowMs: number): string =>
  stamp === undefined || stamp === null ? '<unknown>' : humanDuration(nowMs - parseTimeMs(stamp));
