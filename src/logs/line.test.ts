import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fixedTime, nanosOf, parseCriLine, parseDockerLine } from './line.ts';

const T = '2026-01-01T00:00:00.5Z';
const shown = (line: ReturnType<typeof parseCriLine>): string | undefined =>
  line && `${line.time}|${line.stream}|${line.content.toString()}`;

describe('a line of a CRI log', () => {
  for (const [name, text, expected] of [
    ['a whole line', `${T} stdout F hello\n`, `${T}|stdout|hello\n`],
    ['a part of a line loses its end', `${T} stderr P hel\n`, `${T}|stderr|hel`],
    ['a part without an end', `${T} stderr P hel`, `${T}|stderr|hel`],
    ['an empty line', `${T} stdout F \n`, `${T}|stdout|\n`],
    ['an empty line without a space', `${T} stdout F\n`, `${T}|stdout|\n`],
    ['an empty part', `${T} stdout P\n`, `${T}|stdout|`],
    ['cut off behind its tag', `${T} stdout F`, `${T}|stdout|`],
    ['further tags', `${T} stdout P:x:y a:b`, `${T}|stdout|a:b`],
    ['a colon in its text only', `${T} stdout F a:b`, `${T}|stdout|a:b`],
    ['an unknown tag', `${T} stdout X hello`, undefined],
    ['an unknown stream', `${T} stdin F hello`, undefined],
    ['no time', 'yesterday stdout F hello', undefined],
    ['two words', `${T} stdout`, undefined],
    ['one word', 'hello', undefined],
  ] as const)
    it(name, () => assert.equal(shown(parseCriLine(Buffer.from(text))), expected));
});

describe('a line of a JSON log', () => {
  for (const [name, entry, expected] of [
    ['a whole line', { log: 'hello\n', stream: 'stdout', time: T }, `${T}|stdout|hello\n`],
    ['no text', { stream: 'stdout', time: T }, undefined],
    ['no stream', { log: 'x', time: T }, undefined],
    ['an unknown stream', { log: 'x', stream: 'stdin', time: T }, undefined],
    ['no time', { log: 'x', stream: 'stdout' }, undefined],
    ['a time that is none', { log: 'x', stream: 'stdout', time: 'noon' }, undefined],
    ['null', null, undefined],
    ['a number', 7, undefined],
  ] as const)
    it(name, () => assert.equal(shown(parseDockerLine(Buffer.from(JSON.stringify(entry)))), expected));

  it('no JSON', () => assert.equal(parseDockerLine(Buffer.from('{"log":')), undefined));
});

describe('times', () => {
  for (const [time, nanos, fixed] of [
    ['1970-01-01T00:00:01Z', 1_000_000_000n, '1970-01-01T00:00:01.000000000Z'],
    ['1970-01-01T00:00:01.000000007Z', 1_000_000_007n, '1970-01-01T00:00:01.000000007Z'],
    ['1970-01-01T00:00:01.0000000079Z', 1_000_000_007n, '1970-01-01T00:00:01.000000007Z'],
    ['1970-01-01T01:00:01.5+01:00', 1_500_000_000n, '1970-01-01T01:00:01.500000000+01:00'],
    ['1970-01-01T00:00:01+00:00', 1_000_000_000n, '1970-01-01T00:00:01.000000000Z'],
    ['1970-13-41T00:00:01Z', 0n, '1970-13-41T00:00:01.000000000Z'],
    ['noon', 0n, 'noon'],
  ] as const)
    it(time, () => {
      assert.equal(nanosOf(time), nanos);
      assert.equal(fixedTime(time), fixed);
    });
});
