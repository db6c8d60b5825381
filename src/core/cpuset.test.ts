import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatCpuSet, isCpuSubset, tryParseCpuSet } from './cpuset.ts';

test('CPU lists', () => {
  assert.deepEqual([...(tryParseCpuSet('0-2,5') ?? [])], [0, 1, 2, 5]);
  assert.deepEqual([...(tryParseCpuSet('') ?? [1])], []);
  assert.equal(formatCpuSet(new Set([5, 0, 2, 1])), '0-2,5');
  for (const bad of [',', '1,', '-1', '2-1', 'a', '1-2-3', '1 ', '1-', '0-99999999'])
    assert.equal(tryParseCpuSet(bad), undefined, bad);
  assert.equal(isCpuSubset(new Set([1]), new Set([0, 1])), true);
  assert.equal(isCpuSubset(new Set([2]), new Set([0, 1])), false);
});

test('what is printed reads back as the same set', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(300)), (cpus) => {
      const again = tryParseCpuSet(formatCpuSet(new Set(cpus)));
      assert.deepEqual(
        [...(again ?? [])],
        [...cpus].sort((a, b) => a - b),
      );
    }),
  );
});
