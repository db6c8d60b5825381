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
      line.wait(never, line.newPlace()).then(() => entered.push('third')),
      line.wait(never, first).then(() => entered.push('first')),
    ];
    assert.equal(line.length, 3);
    for (const _ of all) assert.equal(line.letIn(), true);
    assert.equal(line.letIn(), false);
    await Promise.all(all);
    assert.deepEqual(entered, ['first', 'second', 'third']);
  });

  it('lets in who waits at a place, wherever that is', async () => {
    const line = new WaitingLine();
    const [first, second] = [line.newPlace(), line.newPlace()];
    const before = line.wait(never, first);
    const called = line.wait(never, second);
    assert.equal(line.letInPlace(second), true);
    await called;
    assert.equal(line.letInPlace(second), false);
    assert.equal(line.length, 1);
    line.letIn();
    await before;
  });

  it('is left by who no longer wants to wait, with the reason', async () => {
    const line = new WaitingLine();
    const stop = new AbortController();
    const gone = line.wait(stop.signal, line.newPlace());
    const stays = line.wait(never, line.newPlace());
    stop.abort('shutting down');
    await assert.rejects(gone, new Error('shutting down'));
    assert.equal(line.length, 1);
    line.letIn();
    await stays;
  });

  it('has no more to do with a signal once it let its waiter in', async () => {
    const line = new WaitingLine();
    const stop = new AbortController();
    const entered = line.wait(stop.signal, line.newPlace());
    const next = line.wait(never, line.newPlace());
    line.letIn();
    stop.abort();
    await entered;
    assert.equal(line.length, 1, 'the one behind it stays');
    line.letIn();
    await next;
  });

  it('tells what it knows of who waits, and lets in whom it is told to', async () => {
    const line = new WaitingLine<string>();
    const [first, second] = ['first', 'second'].map((about) => line.wait(never, line.newPlace(), about));
    assert.deepEqual(line.waiting, ['first', 'second']);
    assert.equal(line.letIn(2), false);
    assert.equal(line.letIn(1), true);
    await second;
    assert.deepEqual(line.waiting, ['first']);
    line.letIn();
    await first;
  });
});
