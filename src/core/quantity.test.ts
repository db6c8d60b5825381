import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  quantity,
  subtractQuantities,
  toMilli,
  toUnits,
  tryParseQuantity,
} from './quantity.ts';

test('canonical text', () => {
  const table: [string, string][] = [
    ['0', '0'],
    ['0Ki', '0'],
    ['-0', '0'],
    ['1.5', '1500m'],
    ['0.5Gi', '512Mi'],
    ['1024', '1024'],
    ['1024Ki', '1Mi'],
    ['1000Ki', '1000Ki'],
    ['1500Mi', '1500Mi'],
    ['100m', '100m'],
    ['1000m', '1'],
    ['1e3', '1e3'],
    ['1E3', '1e3'],
    ['12e2', '1200'],
    ['1.5e3', '1500'],
    ['1E', '1E'],
    ['1Ei', '1Ei'],
    ['1000k', '1M'],
    ['1u', '1u'],
    ['1n', '1n'],
    ['0.1n', '1n'],
    ['-0.1n', '-1n'],
    ['1.0000000001', '1000000001n'],
    ['.5', '500m'],
    ['5.', '5'],
    ['+5', '5'],
    ['-5Ki', '-5Ki'],
    ['-1Ki', '-1Ki'],
    ['512', '512'],
    ['0.5Ki', '512'],
    ['0.0001Ki', '102400u'],
    ['9223372036854775807', '9223372036854775807'],
    ['99999999999999999999', '9223372036854775807'],
    ['100E', '9223372036854775807'],
    ['1e21', '9223372036854775807'],
    ['100000Ei', '9223372036854775807'],
    ['00012', '12'],
  ];
  for (const [text, wanted] of table) assert.equal(canonicalQuantity(text), wanted, text);
});

test('what is no quantity', () => {
  for (const text of [
    '',
    ' ',
    '1 ',
    ' 1',
    '.',
    '-',
    '+',
    '1i',
    '1ki',
    '1mi',
    '1K',
    '1KI',
    '1.1.1',
    '1e',
    '1e1.5',
    '1e+',
    'e3',
    'Mi',
    '1 Mi',
    '0x10',
    '1_000',
    '1Zi',
    '1,5',
    '--1',
    '1-',
    '1m1',
    '１',
  ])
    assert.equal(tryParseQuantity(text), undefined, JSON.stringify(text));
});

test('what was parsed before is the same, and so is what is none', () => {
  assert.equal(tryParseQuantity('100m'), tryParseQuantity('100m'));
  for (let i = 0; i < 2; i++) assert.equal(tryParseQuantity('much'), undefined);
});

test('whole units and thousandths are rounded up', () => {
  assert.equal(toUnits(quantity('1500m')), 2n);
  assert.equal(toUnits(quantity('-1500m')), -1n);
  assert.equal(toMilli(quantity('1.0001')), 1001);
  assert.equal(toMilli(quantity('1n')), 1);
});

const text = fc
  .tuple(
    fc.constantFrom('', '-', '+'),
    fc.stringMatching(/^[0-9]{0,20}$/),
    fc.option(fc.stringMatching(/^[0-9]{0,12}$/)),
    fc.oneof(
      fc.constantFrom('', 'n', 'u', 'm', 'k', 'M', 'G', 'T', 'P', 'E', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'),
      fc.integer({ min: -30, max: 30 }).map((e) => `e${e}`),
    ),
  )
  .map(([sign, whole, fraction, suffix]) => `${sign}${whole}${fraction === null ? '' : `.${fraction}`}${suffix}`);

test('a binary quantity without a binary suffix reads back as a decimal one', () => {
  const parsed = tryParseQuantity('1.953125Ki');
  assert.ok(parsed !== undefined);
  assert.equal(formatQuantity(parsed), '2000');
  assert.equal(formatQuantity(quantity('2000')), '2k');
});

test('what is printed reads back as the same value and prints the same again in its own family', () => {
  fc.assert(
    fc.property(text, (t) => {
      const parsed = tryParseQuantity(t);
      if (parsed === undefined) return /^[+-]?\.?([a-zA-Z].*)?$/.test(t);
      const printed = formatQuantity(parsed);
      const again = tryParseQuantity(printed);
      return (
        again !== undefined &&
        compareQuantities(again, parsed) === 0 &&
        formatQuantity({ ...again, format: parsed.format }) === printed
      );
    }),
    { numRuns: 5000 },
  );
});

test('arbitrary text never throws', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 12 }), (t) => {
      const parsed = tryParseQuantity(t);
      if (parsed !== undefined) formatQuantity(parsed);
    }),
    { numRuns: 3000 },
  );
});

test('sums undo differences', () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      const [x, y] = [quantity(a), quantity(b)];
      return compareQuantities(subtractQuantities(addQuantities(x, y), y), x) === 0;
    }),
  );
});
