import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import fc from 'fast-check';
import { limitsOf, nextSizes, resolveCount } from './rollout.ts';

test('counts and percentages', () => {
  assert.equal(resolveCount(3, 10, true), 3);
  assert.equal(resolveCount('25%', 10, true), 3);
  assert.equal(resolveCount('25%', 10, false), 2);
  assert.equal(resolveCount('x', 10, false), 0);
  assert.deepEqual(limitsOf('25%', '25%', 1), { maxSurge: 1, maxUnavailable: 0 });
  assert.deepEqual(limitsOf(0, 0, 5), { maxSurge: 0, maxUnavailable: 1 });
});

test('a rollout never has too many pods or too few available, and ends', () => {
  const size = fc.integer({ min: 0, max: 12 });
  fc.assert(
    fc.property(
      size,
      size,
      fc.integer({ min: 0, max: 4 }),
      fc.integer({ min: 0, max: 4 }),
      (wanted, had, surge, unavailable) => {
        const limits = limitsOf(surge, unavailable, wanted);
        let fresh = { name: 'new', replicas: 0, available: 0 };
        let old = { name: 'old', replicas: had, available: had };
        for (let step = 0; step < 100; step++) {
          const next = nextSizes(wanted, fresh, [old], limits);
          const oldSize = next.old.get('old') ?? 0;
          const total = next.fresh + oldSize;
          assert.ok(total <= Math.max(wanted + limits.maxSurge, fresh.replicas + old.replicas), 'too many');
          const stillUp = Math.min(fresh.available, next.fresh) + Math.min(old.available, oldSize);
          assert.ok(stillUp >= Math.min(wanted - limits.maxUnavailable, fresh.available + old.available), 'too few');
          fresh = { name: 'new', replicas: next.fresh, available: next.fresh };
          old = { name: 'old', replicas: oldSize, available: oldSize };
        }
        assert.deepEqual([fresh.replicas, old.replicas], [wanted, 0]);
      },
    ),
  );
});
