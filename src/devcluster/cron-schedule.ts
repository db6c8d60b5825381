// The five fields of a cron schedule, or its `@daily` and the like, and the times they name. Pure.

import { tryParseDuration } from '../core/duration.ts';

type Days = { readonly values: ReadonlySet<number>; readonly any: boolean };
export type Schedule =
  | { readonly kind: 'every'; readonly everyMs: number }
  | {
      readonly kind: 'fields';
      readonly minutes: ReadonlySet<number>;
      readonly hours: ReadonlySet<number>;
      readonly daysOfMonth: Days;
      readonly months: ReadonlySet<number>;
      readonly daysOfWeek: Days;
    };

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const WEEK = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const NICKNAMES: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};
type Bounds = { readonly min: number; readonly max: number; readonly names: ReadonlyMap<string, number> };
const bounds = (min: number, max: number, names: readonly string[] = []): Bounds => ({
  min,
  max,
  names: new Map(names.map((name, i) => [name, min + i])),
});
const MINUTE = bounds(0, 59);
const HOUR = bounds(0, 23);
const DAY = bounds(1, 31);
const MONTH = bounds(1, 12, MONTHS);
const WEEKDAY = bounds(0, 6, WEEK);

class Unreadable extends Error {}

/** The schedule, or why it is none. */
export function parseSchedule(text: string): Schedule | string {
  try {
    return read(text);
  } catch (err) {
    if (err instanceof Unreadable) return err.message;
    throw err;
  }
}

function read(text: string): Schedule {
  if (text.startsWith('@every ')) return { kind: 'every', everyMs: intervalMs(text.slice('@every '.length)) };
  const plain = text.startsWith('@') ? NICKNAMES[text] : text;
  if (plain === undefined) throw new Unreadable(`unrecognized descriptor: ${text}`);
  const fields = plain.trim().split(/\s+/);
  if (fields.length !== 5)
    throw new Unreadable(`expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`);
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = fields;
  return {
    kind: 'fields',
    minutes: field(minute, MINUTE).values,
    hours: field(hour, HOUR).values,
    daysOfMonth: field(day, DAY),
    months: field(month, MONTH).values,
    daysOfWeek: field(weekday, WEEKDAY),
  };
}

/** Whole seconds, at least one. */
function intervalMs(text: string): number {
  const nanos = tryParseDuration(text);
  if (nanos === undefined) throw new Unreadable(`failed to parse duration @every ${text}`);
  return Math.max(1, Math.floor(nanos / 1e9)) * 1000;
}

function field(text: string, within: Bounds): Days {
  const values = new Set<number>();
  let any = false;
  for (const part of text.split(',')) {
    const range = partOf(part, within);
    any ||= range.any;
    for (let value = range.from; value <= range.to; value += range.step) values.add(value);
  }
  return { values, any };
}

type Range = { readonly from: number; readonly to: number; readonly step: number; readonly any: boolean };

/** `*`, `5`, `2-4`, and each of them with `/step`. */
function partOf(text: string, within: Bounds): Range {
  const [span = '', stepText, ...more] = text.split('/');
  if (more.length > 0) throw new Unreadable(`too many slashes: ${text}`);
  const step = stepText === undefined ? 1 : wholeNumber(stepText);
  if (step === 0) throw new Unreadable(`step of range should be a positive number: ${text}`);
  if (span === '*' || span === '?') return { from: within.min, to: within.max, step, any: step === 1 };
  const [first = '', last, ...rest] = span.split('-');
  if (rest.length > 0) throw new Unreadable(`too many hyphens: ${text}`);
  const from = numberOrName(first, within);
  const to = last !== undefined ? numberOrName(last, within) : stepText === undefined ? from : within.max;
  if (from < within.min) throw new Unreadable(`beginning of range (${from}) below minimum (${within.min}): ${text}`);
  if (to > within.max) throw new Unreadable(`end of range (${to}) above maximum (${within.max}): ${text}`);
  if (from > to) throw new Unreadable(`beginning of range (${from}) beyond end of range (${to}): ${text}`);
  return { from, to, step, any: false };
}

const numberOrName = (text: string, { names }: Bounds): number => names.get(text.toLowerCase()) ?? wholeNumber(text);

function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new Unreadable(`failed to parse int from ${text}`);
  return Number(text);
}

export function timeZoneProblem(zone: string): string | undefined {
  if (zone === '') return 'timeZone must be nil or non-empty string';
  if (zone.toLowerCase() === 'local')
    return 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones';
  try {
    formatIn(zone);
    return undefined;
  } catch {
    // Not in the table of time zones, which is all that is asked.
    return `unknown time zone ${zone}`;
  }
}

type Local = { month: number; day: number; weekday: number; hour: number; minute: number };
const formats = new Map<string, Intl.DateTimeFormat>();

function formatIn(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (format === undefined) {
    const numbers = { month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' } as const;
    format = new Intl.DateTimeFormat('en-US', { timeZone: zone, hourCycle: 'h23', weekday: 'short', ...numbers });
    formats.set(zone, format);
  }
  return format;
}

function localTime(ms: number, zone: string): Local {
  if (zone === 'UTC') {
    const date = new Date(ms);
    return {
      month: date.getUTCMonth() + 1,
      day: date.getUTCDate(),
      weekday: date.getUTCDay(),
      hour: date.getUTCHours(),
      minute: date.getUTCMinutes(),
    };
  }
  const parts = new Map(
    formatIn(zone)
      .formatToParts(ms)
      .map((p) => [p.type, p.value]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes): number => Number(parts.get(type));
  return {
    month: part('month'),
    day: part('day'),
    weekday: WEEK.indexOf((parts.get('weekday') ?? '').toLowerCase()),
    hour: part('hour'),
    minute: part('minute'),
  };
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A schedule for the 29th of February has its next turn at most eight years from now. */
const HORIZON_MS = 9 * 366 * 24 * HOUR_MS;

/** The first time after `afterMs`; undefined for one that never comes, like the 30th of February. */
export function nextTime(schedule: Schedule, afterMs: number, zone = 'UTC'): number | undefined {
  if (schedule.kind === 'every') return afterMs - (afterMs % 1000) + schedule.everyMs;
  let at = afterMs - (afterMs % MINUTE_MS) + MINUTE_MS;
  while (at < afterMs + HORIZON_MS) {
    const local = localTime(at, zone);
    const toHour = HOUR_MS - local.minute * MINUTE_MS;
    if (!dayMatches(schedule, local)) at += toHour + (zone === 'UTC' ? (23 - local.hour) * HOUR_MS : 0);
    else if (!schedule.hours.has(local.hour)) at += toHour;
    else if (schedule.minutes.has(local.minute)) return at;
    else at += MINUTE_MS;
  }
  return undefined;
}

/** Both kinds of days must fit where one of them is `*`; where both are named, one is enough. */
function dayMatches(schedule: Extract<Schedule, { kind: 'fields' }>, local: Local): boolean {
  const { daysOfMonth, daysOfWeek, months } = schedule;
  if (!months.has(local.month)) return false;
  const [month, week] = [daysOfMonth.values.has(local.day), daysOfWeek.values.has(local.weekday)];
  return daysOfMonth.any || daysOfWeek.any ? month && week : month || week;
}

/** The latest time after `afterMs` that is not after `nowMs`; looks back further and further. */
export function latestTime(schedule: Schedule, afterMs: number, nowMs: number, zone = 'UTC'): number | undefined {
  if (schedule.kind === 'every') {
    const turns = Math.floor((nowMs - afterMs) / schedule.everyMs);
    return turns < 1 ? undefined : afterMs - (afterMs % 1000) + turns * schedule.everyMs;
  }
  for (let windowMs = HOUR_MS; ; windowMs *= 2) {
    const from = Math.max(afterMs, nowMs - windowMs);
    let latest: number | undefined;
    for (let at = nextTime(schedule, from, zone); at !== undefined && at <= nowMs; at = nextTime(schedule, at, zone))
      latest = at;
    if (latest !== undefined || from === afterMs) return latest;
  }
}
