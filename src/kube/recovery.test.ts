import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import { Recovery } from './recovery.ts';

test('the first answer after a failure is told, not more often than every ten seconds', async () => {
  const clock = new ManualClock();
  const recovery = new Recovery(clock);
  const heard: number[] = [];
  const end = recovery.onRecovered(() => heard.push(clock.monotonic()));
  recovery.answered();
  assert.deepEqual(heard, [], 'nothing was wrong');
  recovery.failed();
  recovery.answered();
  recovery.answered();
  assert.deepEqual(heard, [0]);
  for (let i = 0; i < 5; i++) {
    await clock.advance(100);
    recovery.failed();
    recovery.answered();
  }
  assert.deepEqual(heard, [0]);
  await clock.advance(20_000);
  assert.deepEqual(heard, [0, 10_000], 'the last return is told in the end');
  recovery.failed();
  recovery.answered();
  recovery.failed();
  recovery.answered();
  recovery.failed();
  await clock.advance(20_000);
  assert.deepEqual(heard, [0, 10_000, 20_500], 'a server that is down again is not');
  end();
  recovery.answered();
  assert.equal(heard.length, 3);
  assert.equal(clock.pending, 0);
});

test('every answer to a request is told where that is asked for, none to a watch', async () => {
  const clock = new ManualClock();
  const recovery = new Recovery(clock);
  const heard: number[] = [];
  recovery.onAnswered(() => heard.push(clock.monotonic()));
  recovery.answered('watch');
  assert.equal(recovery.answeredAt, -Infinity);
  for (const what of ['request', 'watch', 'request'] as const) {
    await clock.advance(1);
    recovery.answered(what);
  }
  assert.deepEqual(heard, [1, 3]);
  assert.equal(recovery.answeredAt, 3);
});
