import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { sharesOfWeight, weightOfShares, hugePageName } from '../host/cgroups/cgroups.ts';
import { MAX_SHARES, MIN_SHARES, quotaOfMilli, sharesOfMilli } from './formulas.ts';

test('millicores to shares', () => {
  const rows: [number, number][] = [
    [0, 2],
    [1, 2],
    [2, 2],
    [3, 3],
    [100, 102],
    [150, 153],
    [1000, 1024],
    [1150, 1177],
    [256_000, 262_144],
    [10_000_000, 262_144],
  ];
  for (const [milli, shares] of rows) assert.equal(sharesOfMilli(milli), shares, `${milli}m`);
});

test('millicores to quota', () => {
  const rows: [number, number, number][] = [
    [0, 100_000, 0],
    [1, 100_000, 1000],
    [10, 100_000, 1000],
    [11, 100_000, 1100],
    [200, 100_000, 20_000],
    [1150, 100_000, 115_000],
    [200, 5000, 1000],
    [500, 10_000, 5000],
  ];
  for (const [milli, period, quota] of rows) assert.equal(quotaOfMilli(milli, period), quota, `${milli}m`);
});

test('shares to weight', () => {
  const rows: [number, number][] = [
    [2, 1],
    [102, 4],
    [1024, 39],
    [1177, 45],
    [262_144, 10_000],
    [0, 1],
    [999_999, 10_000],
  ];
  for (const [shares, weight] of rows) assert.equal(weightOfShares(shares), weight, String(shares));
  assert.equal(sharesOfWeight(1), 2);
  assert.equal(sharesOfWeight(10_000), 262_144);
});

test('more request never means less weight, and everything stays in range', () => {
  const milli = fc.integer({ min: 0, max: 1_000_000 });
  fc.assert(
    fc.property(milli, milli, (a, b) => {
      const [low, high] = [Math.min(a, b), Math.max(a, b)];
      assert.ok(sharesOfMilli(low) <= sharesOfMilli(high));
      assert.ok(weightOfShares(sharesOfMilli(low)) <= weightOfShares(sharesOfMilli(high)));
      for (const shares of [sharesOfMilli(a), sharesOfMilli(b)]) {
        assert.ok(shares >= MIN_SHARES && shares <= MAX_SHARES);
        const weight = weightOfShares(shares);
        assert.ok(weight >= 1 && weight <= 10_000);
        assert.equal(weightOfShares(sharesOfWeight(weight)) <= weight, true);
      }
    }),
  );
});

test('huge page names', () => {
  assert.deepEqual([2 ** 16, 2 ** 21, 2 ** 25, 2 ** 30].map(hugePageName), ['64KB', '2MB', '32MB', '1GB']);
});
