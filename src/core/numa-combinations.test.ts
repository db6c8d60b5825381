import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numaCombinations } from './numa-combinations.ts';

test('by size, then by the ids of the nodes', () => {
  assert.deepEqual([...numaCombinations([])], []);
  assert.deepEqual([...numaCombinations([0, 2, 5])], [[0], [2], [5], [0, 2], [0, 5], [2, 5], [0, 2, 5]]);
});

test('the same order on machines whose sets are too many to keep', () => {
  const ids = Array.from({ length: 9 }, (_, i) => i);
  const sets = [...numaCombinations(ids)];
  assert.equal(sets.length, 2 ** 9 - 1);
  assert.deepEqual([sets[0], sets[8], sets[9], sets.at(-1)], [[0], [8], [0, 1], ids]);
});
