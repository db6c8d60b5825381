import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aborted } from './abort.ts';
import { silentLogger } from './logger.ts';
import { ManualClock } from './manual-clock.ts';
import { supervise, type Runnable } from './supervise.ts';

const until: Runnable = { name: 'until', run: (signal) => aborted(signal) };
const setup = () => ({ clock: new ManualClock(), log: silentLogger });

test('parts stop together when told to', async () => {
  const deps = setup();
  const stop = new AbortController();
  const running = supervise([until, until], deps, stop.signal);
  stop.abort();
  await running;
  assert.equal(deps.clock.pending, 0);
});

test('a part that dies stops the others and says why', async () => {
  const dies: Runnable = { name: 'dies', run: () => Promise.reject(new Error('boom')) };
  await assert.rejects(supervise([until, dies], setup(), new AbortController().signal), /boom/);
  const ends: Runnable = { name: 'ends', run: () => Promise.resolve() };
  await assert.rejects(supervise([until, ends], setup(), new AbortController().signal), /ends ended although/);
});

test('a part that ignores its signal is left behind after thirty seconds', async () => {
  const deps = setup();
  const stop = new AbortController();
  const deaf: Runnable = { name: 'deaf', run: () => new Promise(() => undefined) };
  let stopped = false;
  const running = supervise([deaf, until], deps, stop.signal).then(() => (stopped = true));
  stop.abort();
  await deps.clock.advance(29_000);
  assert.equal(stopped, false);
  await deps.clock.advance(1000);
  await running;
  assert.equal(deps.clock.pending, 0);
});
