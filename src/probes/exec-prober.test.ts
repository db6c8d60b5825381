// An exec probe that nobody listens to any more.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import type { ExecSync } from './exec-prober.ts';
import { containerProber } from './probers.ts';

test('exec: a command that has begun is not cut off when nobody listens any more, one that waits is called off', async () => {
  const clock = new ManualClock();
  const begun: AbortSignal[] = [];
  let finish = (): void => undefined;
  const exec: ExecSync = (_id, _command, _seconds, own) => {
    begun.push(own);
    return new Promise(
      (resolve) => (finish = () => resolve({ exitCode: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) })),
    );
  };
  const prober = containerProber(clock, exec, 1);
  const life = new AbortController();
  const probe = { exec: { command: ['x'] } };
  const target = { probe, container: { name: 'c' }, containerId: 'i', podIp: '', timeoutMs: 1000, life: life.signal };
  const stop = new AbortController();
  const first = prober(target, stop.signal);
  const second = assert.rejects(prober(target, stop.signal));
  await clock.advance(10);
  stop.abort();
  await second;
  assert.deepEqual(
    begun.map(({ aborted }) => aborted),
    [false],
  );
  finish();
  assert.deepEqual(await first, { result: 'success', output: '' });
  life.abort();
  assert.deepEqual([begun[0]?.aborted, clock.pending], [true, 0]);
});
