import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crashBackoffOf, pageSizeName, swapFactsOf } from './configured-facts.ts';

test('huge page sizes as runtimes name them', () => {
  const rows: [number, string][] = [
    [2 ** 16, '64KB'],
    [2 ** 21, '2MB'],
    [2 ** 30, '1GB'],
    [1536, '1536B'],
  ];
  for (const [bytes, name] of rows) assert.equal(pageSizeName(bytes), name);
});

test('crash back-off by gate and configuration', () => {
  assert.deepEqual(crashBackoffOf(false, undefined), { initialMs: 10_000, maxMs: 300_000 });
  assert.deepEqual(crashBackoffOf(true, undefined), { initialMs: 1000, maxMs: 60_000 });
  assert.deepEqual(crashBackoffOf(false, 2000), { initialMs: 10_000, maxMs: 2000 });
});

test('swap is accounted for always on cgroup v1, else where there is any', () => {
  for (const [swapBehavior, cgroupVersion, swapBytes, accounted] of [
    ['LimitedSwap', 2, 1, true],
    ['NoSwap', 2, 0, false],
    ['', 1, 0, true],
  ] as const)
    assert.deepEqual(swapFactsOf({ swapBehavior, cgroupVersion, swapBytes }), {
      cgroupVersion,
      swapBehavior: swapBehavior === 'LimitedSwap' ? 'LimitedSwap' : 'NoSwap',
      swapAccounting: accounted,
    });
});
