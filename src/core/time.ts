// API timestamps: `Time` has whole seconds, `MicroTime` exactly six fractional digits. CRI stamps are bigint nanoseconds.
import { withoutEnd } from '../lib/text.ts';

/** `.sssZ`, whatever the length of the year. */
const FRACTION_LENGTH = 5;

export const apiTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, -FRACTION_LENGTH)}Z`;
export const microTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, -1)}000Z`;
export const parseTimeMs = (text: string | null | undefined): number =>
  text === null || text === undefined ? 0 : Date.parse(text) || 0;
export const nanosToMs = (nanos: bigint): number => Number(nanos / 1_000_000n);
export const nanosToApiTime = (nanos: bigint): string => apiTime(nanosToMs(nanos));

/** RFC 3339 with nanoseconds, trailing zeros dropped as Go's RFC3339Nano does. */
export function rfc3339Nano(nanos: bigint): string {
  const seconds = new Date(Number(nanos / 1_000_000_000n) * 1000).toISOString().slice(0, 19);
  const fraction = withoutEnd(String(nanos % 1_000_000_000n).padStart(9, '0'), '0');
  return `${seconds}${fraction === '' ? '' : `.${fraction}`}Z`;
}
