// Go durations (`1m30s`, `100ms`) as integer nanoseconds, parsed and printed as Go does.

const UNITS: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 };
const PART = /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/y;

/** Nanoseconds, or undefined for text that is no duration. */
export function tryParseDuration(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1;
  const body = text.replace(/^[+-]/, '');
  if (body === '0') return 0;
  if (body === '') return undefined;
  let total = 0;
  PART.lastIndex = 0;
  while (PART.lastIndex < body.length) {
    const match = PART.exec(body);
    if (match === null) return undefined;
    const [, whole = '', fraction = '', unit = ''] = match;
    if (whole === '' && fraction === '') return undefined;
    total += Math.round(Number(`${whole || '0'}.${fraction || '0'}`) * (UNITS[unit] ?? 0));
    if (total > Number.MAX_SAFE_INTEGER * 1024) return undefined;
  }
  return sign * total;
}

export const durationMs = (text: string): number => (tryParseDuration(text) ?? 0) / 1e6;

/** Prints nanoseconds as Go does: `5m0s`, `1m20s`, `1.5s`, `100ms`, `0s`. */
export function formatDuration(nanos: number): string {
  if (nanos === 0) return '0s';
  const sign = nanos < 0 ? '-' : '';
  const n = Math.abs(Math.trunc(nanos));
  if (n < 1e3) return `${sign}${n}ns`;
  if (n < 1e6) return `${sign}${trimmed(n / 1e3, 3)}µs`;
  if (n < 1e9) return `${sign}${trimmed(n / 1e6, 6)}ms`;
  const hours = Math.floor(n / 3600e9);
  const minutes = Math.floor((n % 3600e9) / 60e9);
  const seconds = trimmed((n % 60e9) / 1e9, 9);
  return `${sign}${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${seconds}s`;
}

export const formatDurationMs = (ms: number): string => formatDuration(Math.round(ms * 1e6));

const trimmed = (value: number, digits: number): string => {
  const text = value.toFixed(digits);
  return text.includes('.') ? text.replace(/0+$/, '').replace(/\.$/, '') : text;
};
