import { strict as assert } from 'node:assert';
import { describe, it } from 'node:test';
import { latestTime, nextTime, parseSchedule, timeZoneProblem, type Schedule } from './cron-schedule.ts';

function schedule(text: string): Schedule {
  const read = parseSchedule(text);
  if (typeof read === 'string') assert.fail(read);
  return read;
}
const ms = (text: string): number => Date.parse(text);
const iso = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString().replace(':00.000Z', '');

describe('cron schedules', () => {
  const next: readonly (readonly [string, string, string | undefined, string?])[] = [
    ['* * * * *', '2026-01-01T00:00:30Z', '2026-01-01T00:01'],
    ['* * * * *', '2026-01-01T00:00:00Z', '2026-01-01T00:01'],
    ['*/15 * * * *', '2026-01-01T00:16:00Z', '2026-01-01T00:30'],
    ['5/20 * * * *', '2026-01-01T00:06:00Z', '2026-01-01T00:25'],
    ['0 9-17/4 * * mon-fri', '2026-01-02T13:30:00Z', '2026-01-02T17:00'],
    ['0 9 * * mon-fri', '2026-01-02T13:30:00Z', '2026-01-05T09:00'],
    ['30 4 1,15 * 5', '2026-01-01T05:00:00Z', '2026-01-02T04:30'],
    ['30 4 15 * ?', '2026-01-01T05:00:00Z', '2026-01-15T04:30'],
    ['0 0 * * 0', '2026-01-01T00:00:00Z', '2026-01-04T00:00'],
    ['@hourly', '2026-01-01T00:00:00Z', '2026-01-01T01:00'],
    ['@yearly', '2026-01-01T00:00:00Z', '2027-01-01T00:00'],
    ['0 0 29 2 *', '2026-01-01T00:00:00Z', '2028-02-29T00:00'],
    ['0 0 30 feb *', '2026-01-01T00:00:00Z', undefined],
    ['@every 1h30m', '2026-01-01T00:00:00Z', '2026-01-01T01:30'],
    ['@every 1.5h', '2026-01-01T00:00:00Z', '2026-01-01T01:30'],
    ['@every 2500ms', '2026-01-01T00:00:00Z', '2026-01-01T00:00:02.000Z'],
    ['@every 1ms', '2026-01-01T00:00:00Z', '2026-01-01T00:00:01.000Z'],
    ['0 9 * * *', '2026-07-01T00:00:00Z', '2026-07-01T07:00', 'Europe/Berlin'],
    ['0 9 * * *', '2026-01-01T00:00:00Z', '2026-01-01T03:30', 'Asia/Kolkata'],
    ['0 0 1 * *', '2026-01-05T00:00:00Z', '2026-02-01T05:00', 'America/New_York'],
  ];
  for (const [text, after, expected, zone] of next)
    it(`${text} after ${after} ${zone ?? ''}`, () => {
      assert.equal(iso(nextTime(schedule(text), ms(after), zone)), expected);
    });

  const latest: readonly (readonly [string, string, string, string | undefined])[] = [
    ['* * * * *', '2026-01-01T00:00:00Z', '2026-01-01T00:00:59Z', undefined],
    ['* * * * *', '2026-01-01T00:00:00Z', '2026-01-01T00:01:00Z', '2026-01-01T00:01'],
    ['* * * * *', '2020-01-01T00:00:00Z', '2026-01-01T00:01:59Z', '2026-01-01T00:01'],
    ['0 12 * * *', '2026-01-01T00:00:00Z', '2026-03-01T11:00:00Z', '2026-02-28T12:00'],
    ['0 12 * * *', '2026-01-01T13:00:00Z', '2026-01-02T11:00:00Z', undefined],
    ['@every 7m', '2026-01-01T00:00:00Z', '2026-01-01T00:20:00Z', '2026-01-01T00:14'],
  ];
  for (const [text, after, now, expected] of latest)
    it(`the latest ${text} between ${after} and ${now}`, () => {
      assert.equal(iso(latestTime(schedule(text), ms(after), ms(now))), expected);
    });

  const wrong: readonly (readonly [string, RegExp])[] = [
    ['* * * *', /^expected exactly 5 fields, found 4: \[\* \* \* \*\]$/],
    ['60 * * * *', /^end of range \(60\) above maximum \(59\): 60$/],
    ['* * 0 * *', /^beginning of range \(0\) below minimum \(1\): 0$/],
    ['* * * * 7', /above maximum \(6\)/],
    ['5-2 * * * *', /beyond end of range/],
    ['*/0 * * * *', /should be a positive number/],
    ['1/2/3 * * * *', /too many slashes/],
    ['1-2-3 * * * *', /too many hyphens/],
    ['a * * * *', /^failed to parse int from a$/],
    ['@dailyy', /^unrecognized descriptor: @dailyy$/],
    ['@every soon', /^failed to parse duration @every soon$/],
  ];
  for (const [text, complaint] of wrong)
    it(`${text} is refused`, () => {
      const read = parseSchedule(text);
      assert.match(typeof read === 'string' ? read : '', complaint);
    });

  it('knows time zones', () => {
    assert.equal(timeZoneProblem('Europe/Berlin'), undefined);
    assert.equal(timeZoneProblem('Europe/Berlim'), 'unknown time zone Europe/Berlim');
    assert.match(timeZoneProblem('Local') ?? '', /explicit time zone/);
  });
});
