import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KubeletError } from '../lib/errors.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { DialGate, retryInMs } from './dial-gate.ts';

const absent = new KubeletError('unavailable', 'connect ECONNREFUSED', { detail: { absent: true } });
const silent = new KubeletError('unavailable', 'no connection in 5000ms');

/** How long each of `times` failures in a row shuts the gate. */
async function pauses(failure: Error, times: number): Promise<number[]> {
  const clock = new ManualClock(0, () => 1);
  const gate = new DialGate(clock, { maxSilentMs: 30_000 });
  const found: number[] = [];
  for (let i = 0; i < times; i++) {
    const ms = retryInMs(gate.failed(failure)) ?? 0;
    assert.throws(() => gate.check(), { message: failure.message });
    await clock.advance(ms);
    assert.doesNotThrow(() => gate.check());
    found.push(ms);
  }
  return found;
}

test('where nobody listens, attempts come often', async () => {
  assert.deepEqual(await pauses(absent, 8), [50, 100, 200, 400, 800, 1000, 1000, 1000]);
});

test('a server that does not answer is left alone for longer and longer', async () => {
  assert.deepEqual(await pauses(silent, 8), [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
});

test('an answer opens the gate', () => {
  const gate = new DialGate(new ManualClock(), { maxSilentMs: 30_000 });
  for (let i = 0; i < 9; i++) gate.failed(silent);
  assert.throws(() => gate.check());
  gate.open();
  assert.doesNotThrow(() => gate.check());
  assert.equal(retryInMs(gate.failed(silent)), 400);
});

test('what is no failure to connect shuts nothing', () => {
  const gate = new DialGate(new ManualClock(), { maxSilentMs: 30_000 });
  const other = new Error('stopped');
  assert.equal(gate.failed(other), other);
  assert.doesNotThrow(() => gate.check());
  assert.equal(retryInMs(other), undefined);
});
