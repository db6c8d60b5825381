import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ManualClock } from '../lib/manual-clock.ts';
import { BeatQueue } from './beat-queue.ts';

type Item = { name: string };

test('items come when due, rescheduling replaces, cancelling forgets', async () => {
  const clock = new ManualClock();
  const seen: string[] = [];
  const queue = new BeatQueue<Item>(clock, (item) => seen.push(`${item.name}@${clock.monotonic()}`));
  const [a, b, c] = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];
  queue.schedule(a, 300);
  queue.schedule(b, 100);
  queue.schedule(c, 200);
  queue.schedule(a, 50);
  queue.cancel(c);
  assert.equal(clock.pending, 1);
  await clock.advance(1000);
  assert.deepEqual(seen, ['a@50', 'b@100']);
  assert.equal(queue.size, 0);
  assert.equal(clock.pending, 0);
});

test('any set of times comes out in order, through one timer', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(50), { maxLength: 40 }), async (times) => {
      const clock = new ManualClock();
      const seen: number[] = [];
      const queue = new BeatQueue<{ at: number }>(clock, (item) => seen.push(item.at));
      for (const at of times) queue.schedule({ at }, at);
      assert.ok(clock.pending <= 1);
      await clock.advance(60);
      assert.deepEqual(
        seen,
        [...times].sort((x, y) => x - y),
      );
    }),
    { numRuns: 30 },
  );
});

test('stopping leaves no timer', () => {
  const clock = new ManualClock();
  const queue = new BeatQueue<Item>(clock, () => undefined);
  queue.schedule({ name: 'a' }, 10);
  queue.stop();
  assert.equal(clock.pending, 0);
});
