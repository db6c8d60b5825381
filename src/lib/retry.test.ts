import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { silentLogger } from './logger.ts';
import { ManualClock } from './manual-clock.ts';
import { retryUntilDone } from './retry.ts';

const OPTIONS = { message: 'socket is not served, trying again', path: '/run/s' };

function setup(failures: number) {
  const clock = new ManualClock();
  const lines: string[] = [];
  const record = (message: string, fields?: object): void =>
    void lines.push(`${message} ${(fields as { path?: string } | undefined)?.path ?? ''}`);
  const log = { ...silentLogger, error: record, info: record };
  const state = { attempts: 0 };
  const work = (): Promise<string> =>
    ++state.attempts <= failures ? Promise.reject(new Error('ENOSPC')) : Promise.resolve('done');
  return { clock, lines, log, state, work };
}

describe('retry until done', () => {
  it('says nothing when the first attempt succeeds', async () => {
    const { clock, lines, log, work } = setup(0);
    assert.equal(await retryUntilDone({ clock, log }, OPTIONS, work, new AbortController().signal), 'done');
    assert.deepEqual([lines, clock.pending], [[], 0]);
  });

  it('logs the first failure and the recovery, with longer and longer rests between', async () => {
    const { clock, lines, log, state, work } = setup(3);
    const done = retryUntilDone({ clock, log }, OPTIONS, work, new AbortController().signal);
    await clock.advance(999);
    assert.equal(state.attempts, 1);
    await clock.advance(1);
    await clock.advance(1999);
    assert.equal(state.attempts, 2);
    await clock.advance(1 + 4000);
    assert.equal(await done, 'done');
    assert.deepEqual(lines, ['socket is not served, trying again /run/s', 'succeeded after failures /run/s']);
  });

  it('ends without a result when it is stopped', async () => {
    const { clock, log, state, work } = setup(Infinity);
    const stop = new AbortController();
    const done = retryUntilDone({ clock, log }, OPTIONS, work, stop.signal);
    await clock.advance(200_000);
    const { attempts } = state;
    assert.ok(attempts > 5);
    stop.abort();
    assert.equal(await done, undefined);
    assert.deepEqual([state.attempts, clock.pending], [attempts, 0]);
  });
});
