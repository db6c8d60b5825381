import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import { SharedAnswer } from './shared-answer.ts';

const never = new AbortController().signal;
const OPTIONS = { maxAgeMs: 1000, deadlineMs: 5000 };

test('those who ask together share one answer, for a second', async () => {
  const clock = new ManualClock();
  let made = 0;
  const answer = new SharedAnswer(clock, async () => Promise.resolve(++made), OPTIONS);
  assert.deepEqual(await Promise.all([answer.get(never), answer.get(never)]), [1, 1]);
  await clock.advance(999);
  assert.equal(await answer.get(never), 1);
  await clock.advance(2);
  assert.equal(await answer.get(never), 2);
});

test('one who hangs up does not take the answer from the others', async () => {
  const clock = new ManualClock();
  const { promise, resolve } = Promise.withResolvers<string>();
  const answer = new SharedAnswer(clock, () => promise, OPTIONS);
  const leaving = new AbortController();
  const first = answer.get(leaving.signal);
  const second = answer.get(never);
  leaving.abort(new Error('gone'));
  await assert.rejects(first, /gone/);
  resolve('here');
  assert.equal(await second, 'here');
});

test('a failure is told once and forgotten', async () => {
  const clock = new ManualClock();
  let made = 0;
  const answer = new SharedAnswer(
    clock,
    () => (made++ === 0 ? Promise.reject(new Error('ill')) : Promise.resolve('well')),
    OPTIONS,
  );
  await assert.rejects(answer.get(never), /ill/);
  assert.equal(await answer.get(never), 'well');
});

test('work that hangs ends at its deadline', async () => {
  const clock = new ManualClock();
  const answer = new SharedAnswer(clock, () => new Promise<never>(() => undefined), OPTIONS);
  const waiting = assert.rejects(answer.get(never), /no answer in 5000ms/);
  await clock.advance(5001);
  await waiting;
});
