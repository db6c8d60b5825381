import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WaitingLine } from './waiting-line.ts';

const never = new AbortController().signal;

describe('a waiting line', () => {
  it('lets in by place, not by arrival', async () => {
    const line = new WaitingLine();
    const [first, second] = [line.newPlace(), line.newPlace()];
    const entered: string[] = [];
    const all = [
      line.wait(never, second).then(() => entered.push('second')),
      line.wait(never).then(() => entered.push('third')),
      line.wait(never, first).then(() => entered.push('first')),
    ];
    assert.equal(line.length, 3);
    for (const _ of all) assert.equal(line.letFirstIn(), true);
    assert.equal(line.letFirstIn(), false);
    await Promise.all(all);
    assert.deepEqual(entered, ['first', 'second', 'third']);
  });

  it('is left by who no longer wants to wait, with the reason', async () => {
    const line = new WaitingLine();
    const stop = new AbortController();
    const gone = line.wait(stop.signal);
    const stays = line.wait(never);
    stop.abort('shutting down');
    await assert.rejects(gone, new Error('shutting down'));
    assert.equal(line.length, 1);
    line.letFirstIn();
    await stays;
  });

  it('has no more to do with a signal once it let its waiter in', async () => {
    const line = new WaitingLine();
    const stop = new AbortController();
    const entered = line.wait(stop.signal);
    const next = line.wait(never);
    line.letFirstIn();
    stop.abort();
    await entered;
    assert.equal(line.length, 1, 'the one behind it stays');
    line.letFirstIn();
    await next;
  });
});
