// The quick comparison says what node:util's says of the same data.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { sameData } from './same-data.ts';

/** A small generator of numbers, the same in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
}

const LEAVES: readonly unknown[] = [0, 1, -0.5, Number.NaN, '', 'a', 'b', true, false, null, 1n, 2n];

function data(next: () => number, depth: number): unknown {
  const pick = next();
  if (depth === 0 || pick < 0.3) return LEAVES[Math.floor(next() * LEAVES.length)];
  const size = Math.floor(next() * 4);
  if (pick < 0.6) return Array.from({ length: size }, () => data(next, depth - 1));
  return Object.fromEntries(
    Array.from({ length: size }, () => ['xyzw'[Math.floor(next() * 4)] ?? 'x', data(next, depth - 1)]),
  );
}

test('agrees with node:util on random data and on copies of it', () => {
  const next = numbers(7);
  let same = 0;
  for (let i = 0; i < 20_000; i++) {
    const [a, b] = [data(next, 3), data(next, 3)];
    assert.equal(sameData(a, b), isDeepStrictEqual(a, b));
    if (sameData(a, b)) same++;
    assert.equal(sameData(a, structuredClone(a)), true);
  }
  assert.ok(same > 100, 'both answers were met');
});

const CASES: readonly [a: unknown, b: unknown, same: boolean, why: string][] = [
  [{ a: 1, b: undefined }, { a: 1 }, true, 'undefined is absent'],
  [{ a: 1 }, { b: undefined, a: 1 }, true, 'undefined is absent on either side'],
  [{ a: 1, b: undefined }, { a: 1, c: 2 }, false, 'a field more'],
  [{ a: 1, b: 2 }, { b: 2, a: 1 }, true, 'the order of fields does not count'],
  [[1, 2], [2, 1], false, 'the order of a list does'],
  [[], {}, false, 'a list is no object'],
  [{ a: null }, {}, false, 'null is something'],
  [{ 0: 'a', length: 1 }, ['a'], false, 'nor is something like one'],
];
for (const [a, b, same, why] of CASES) test(why, () => assert.equal(sameData(a, b), same));
