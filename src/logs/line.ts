// One line of a container log: the CRI's `<time> <stream> <P|F> <content>` or Docker's JSON. Pure.

export type LogStream = 'stdout' | 'stderr';
export type LogLine = {
  /** RFC 3339, as written. */
  readonly time: string;
  readonly stream: LogStream;
  /** With its newline; without one when the line goes on in the next. */
  readonly content: Buffer;
};
export type LineParser = (line: Buffer) => LogLine | undefined;

const SPACE = 0x20;
const NEWLINE = 0x0a;
const COLON = 0x3a;
const PARTIAL = 'P';
const FULL = 'F';

const streamOf = (text: string): LogStream | undefined => (text === 'stdout' || text === 'stderr' ? text : undefined);

export const parseCriLine: LineParser = (line) => {
  const first = line.indexOf(SPACE);
  const second = first < 0 ? -1 : line.indexOf(SPACE, first + 1);
  if (second < 0) return undefined;
  let third = line.indexOf(SPACE, second + 1);
  if (third < 0) third = line.at(-1) === NEWLINE ? line.length - 1 : line.length;
  const time = line.toString('latin1', 0, first);
  const stream = streamOf(line.toString('latin1', first + 1, second));
  const colon = line.indexOf(COLON, second + 1);
  const tag = line.toString('latin1', second + 1, colon >= 0 && colon < third ? colon : third);
  if (stream === undefined || (tag !== PARTIAL && tag !== FULL) || !TIME.test(time)) return undefined;
  const start = line.at(third) === SPACE ? third + 1 : third;
  const drop = tag === PARTIAL && line.at(-1) === NEWLINE ? 1 : 0;
  return { time, stream, content: line.subarray(start, Math.max(line.length - drop, start)) };
};

export const parseDockerLine: LineParser = (line) => {
  let entry: unknown;
  try {
    entry = JSON.parse(line.toString('utf8'));
  } catch {
    // A line that is no JSON is a line we cannot read; the caller counts and skips it.
    return undefined;
  }
  if (typeof entry !== 'object' || entry === null) return undefined;
  const { log, stream, time } = entry as Readonly<Record<string, unknown>>;
  const known = typeof stream === 'string' ? streamOf(stream) : undefined;
  if (typeof log !== 'string' || known === undefined || typeof time !== 'string' || !TIME.test(time)) return undefined;
  return { time, stream: known, content: Buffer.from(log) };
};

const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)$/;

/** Nanoseconds since the epoch. */
export function nanosOf(time: string): bigint {
  const match = TIME.exec(time);
  if (match === null) return 0n;
  const [, seconds = '', fraction = '', zone = ''] = match;
  const ms = Date.parse(`${seconds}${zone}`);
  return Number.isNaN(ms) ? 0n : BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}

/** Always nine digits: `2026-11-15T03:13:56.177442867Z`. */
export function fixedTime(time: string): string {
  const match = TIME.exec(time);
  if (match === null) return time;
  const [, seconds = '', fraction = '', zone = ''] = match;
  return `${seconds}.${fraction.padEnd(9, '0')}${zone === '+00:00' ? 'Z' : zone}`;
}
