import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatDuration, tryParseDuration } from './duration.ts';

const S = 1e9;
const M = 60 * S;
const H = 60 * M;

test('durations are read as Go reads them', () => {
  const table: [string, number | undefined][] = [
    ['0', 0],
    ['-0', 0],
    ['+0', 0],
    ['5s', 5 * S],
    ['+5s', 5 * S],
    ['-5s', -5 * S],
    ['1478s', 1478 * S],
    ['5.0s', 5 * S],
    ['5.6s', 5.6 * S],
    ['5.s', 5 * S],
    ['.5s', 0.5 * S],
    ['1.00100s', 1_001_000_000],
    ['100.00100s', 100_001_000_000],
    ['10ns', 10],
    ['11us', 11_000],
    ['12µs', 12_000],
    ['12μs', 12_000],
    ['13ms', 13e6],
    ['1h2m3s4ms5us6ns', H + 2 * M + 3 * S + 4e6 + 5006],
    ['39h9m14.425s', 39 * H + 9 * M + 14.425 * S],
    ['10.5s4m', 4 * M + 10.5 * S],
    ['-2m3.4s', -(2 * M + 3.4 * S)],
    ['0.3333333333333333333h', 20 * M],
    ['0.100000000000000000000h', 6 * M],
    ['0.830103483285477580700h', 49 * M + 48.372539827 * S],
    ['9223372036854775807ns', 2 ** 63],
    ['-9223372036854775808ns', -(2 ** 63)],
    ['9223372036854775808ns', undefined],
    ['3000000h', undefined],
    ['', undefined],
    ['3', undefined],
    ['-', undefined],
    ['s', undefined],
    ['.', undefined],
    ['-.', undefined],
    ['.s', undefined],
    ['+.s', undefined],
    ['1d', undefined],
    ['1h30', undefined],
    ['1 s', undefined],
    [' 1s', undefined],
    ['1S', undefined],
    ['1e3s', undefined],
    ['--5s', undefined],
    ['1_000s', undefined],
  ];
  for (const [text, wanted] of table) assert.equal(tryParseDuration(text), wanted, text);
});

test('durations are printed as Go prints them', () => {
  const table: [number, string][] = [
    [0, '0s'],
    [1, '1ns'],
    [1100, '1.1µs'],
    [2_200_000, '2.2ms'],
    [3.3 * S, '3.3s'],
    [4 * M + 5 * S, '4m5s'],
    [4 * M + 5.001 * S, '4m5.001s'],
    [5 * H + 6 * M + 7.001 * S, '5h6m7.001s'],
    [8 * M + 1, '8m0.000000001s'],
    [H, '1h0m0s'],
    [-M, '-1m0s'],
    [100 * 24 * H, '2400h0m0s'],
  ];
  for (const [nanos, wanted] of table) assert.equal(formatDuration(nanos), wanted);
});

test('what is printed reads back as the same', () => {
  const nanos = fc.oneof(
    fc.maxSafeInteger(),
    fc.integer(),
    fc.double({ min: -9e18, max: 9e18, noNaN: true }).map(Math.trunc),
  );
  fc.assert(
    fc.property(nanos, (n) => tryParseDuration(formatDuration(n)) === (n || 0)),
    { numRuns: 2000 },
  );
});

test('any text is either a duration that prints and reads back, or none', () => {
  const piece = fc.constantFrom('1', '09', '.', '-', '+', 'h', 'm', 's', 'ms', 'µs', 'ns', 'x', ' ', '5.5s', '1h');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 7 }), (pieces) => {
      const parsed = tryParseDuration(pieces.join(''));
      return parsed === undefined || tryParseDuration(formatDuration(parsed)) === parsed;
    }),
    { numRuns: 2000 },
  );
});
