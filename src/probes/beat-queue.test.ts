import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ManualClock } from '../lib/manual-clock.ts';
import { BeatQueue } from './beat-queue.ts';

test('items come when due, rescheduling replaces, cancelling forgets', async () => {
  const clock = new ManualClock();
  const seen: string[] = [];
  const queue = new BeatQueue(clock, (key) => seen.push(`${key}@${clock.monotonic()}`));
  const [a, b, c] = ['a', 'b', 'c'];
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
      const queue = new BeatQueue(clock, (key) => seen.push(Number(key.split(' ')[0])));
      for (const [i, at] of times.entries()) queue.schedule(`${at} ${i}`, at);
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
  const queue = new BeatQueue(clock, () => undefined);
  queue.schedule('a', 10);
  queue.stop();
  assert.equal(clock.pending, 0);
});

test('any history of scheduling and cancelling: what is left comes in order, and nothing else is held', async () => {
  const step = fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), at: fc.option(fc.nat(50)) });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const clock = new ManualClock();
      const seen: string[] = [];
      const queue = new BeatQueue(clock, (key) => seen.push(key));
      const wanted = new Map<string, number>();
      for (const { key, at } of steps) {
        wanted.delete(key);
        if (at === null) queue.cancel(key);
        else {
          wanted.set(key, at);
          queue.schedule(key, at);
        }
        assert.equal(queue.size, wanted.size);
        assert.equal(queue.has(key), at !== null);
      }
      if (wanted.size === 0) assert.equal(clock.pending, 0);
      await clock.advance(60);
      assert.deepEqual(
        seen,
        [...wanted.entries()].toSorted(([, x], [, y]) => x - y).map(([key]) => key),
      );
    }),
    { numRuns: 300 },
  );
});
