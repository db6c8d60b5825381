// Go durations (`1m30s`, `100ms`) as integer nanoseconds, parsed and printed as Go does. Whole parts are exact; a fraction
// is a double times its unit, truncated, because that is what Go computes.
import { withoutEnd } from '../lib/text.ts';

const UNITS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};
const PART = /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/y;
const MAX = 2n ** 63n - 1n;

/** Nanoseconds, or undefined for text that is no duration. */
export function tryParseDuration(text: string): number | undefined {
  const negative = text.startsWith('-');
  const body = text.replace(/^[+-]/, '');
  if (body === '0') return 0;
  if (body === '') return undefined;
  let total = 0n;
  PART.lastIndex = 0;
  while (PART.lastIndex < body.length) {
    const match = PART.exec(body);
    if (match === null) return undefined;
    const [, whole = '', fraction = '', unitName = ''] = match;
    if (whole === '' && fraction === '') return undefined;
    const unit = UNITS[unitName] ?? 0;
    total += BigInt(whole || '0') * BigInt(unit) + fractionOf(fraction, unit);
    if (total > (negative ? MAX + 1n : MAX)) return undefined;
  }
  // `|| 0`: there is no negative zero duration.
  return Number(negative ? -total : total) || 0;
}

/** The nanoseconds of the digits after the point. Digits that no longer fit 63 bits are dropped, as in Go. */
function fractionOf(digits: string, unit: number): bigint {
  let value = 0n;
  let scale = 1;
  for (const digit of digits) {
    const next = value * 10n + BigInt(digit);
    if (value > MAX / 10n || next > MAX + 1n) break;
    value = next;
    scale *= 10;
  }
  return BigInt(Math.trunc(Number(value) * (unit / scale)));
}

export const durationMs = (text: string): number => (tryParseDuration(text) ?? 0) / 1e6;

/** Prints nanoseconds as Go does: `5m0s`, `1m20s`, `1.5s`, `100ms`, `0s`. */
export function formatDuration(nanos: number): string {
  const whole = BigInt(Math.trunc(nanos));
  if (whole === 0n) return '0s';
  const sign = whole < 0n ? '-' : '';
  const n = whole < 0n ? -whole : whole;
  if (n < 1000n) return `${sign}${n}ns`;
  if (n < 1_000_000n) return `${sign}${decimal(n, 3)}µs`;
  if (n < 1_000_000_000n) return `${sign}${decimal(n, 6)}ms`;
  const minutes = n / 60_000_000_000n;
  const hours = minutes / 60n;
  const seconds = decimal(n % 60_000_000_000n, 9);
  return `${sign}${hours > 0n ? `${hours}h` : ''}${minutes > 0n ? `${minutes % 60n}m` : ''}${seconds}s`;
}

export const formatDurationMs = (ms: number): string => formatDuration(Math.round(ms * 1e6));

/** `n / 10^places` without trailing zeros. */
function decimal(n: bigint, places: number): string {
  const digits = n.toString().padStart(places + 1, '0');
  const fraction = withoutEnd(digits.slice(-places), '0');
  return `${digits.slice(0, -places)}${fraction === '' ? '' : `.${fraction}`}`;
}
