import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import { StartTurns } from './start-turns.ts';

const { signal } = new AbortController();

/** Starts that end when told to. */
function pods(turns: StartTurns, clock: ManualClock) {
  const begun: string[] = [];
  const ends = new Map<string, { resolve: () => void; reject: (err: Error) => void }>();
  const start = (name: string, stop: AbortSignal = signal): Promise<void> =>
    turns.run(stop, () => {
      begun.push(name);
      return new Promise<void>((resolve, reject) => ends.set(name, { resolve, reject }));
    });
  const settle = (): Promise<void> => clock.advance(0);
  return { begun, ends, start, settle };
}

describe('turns of pods that start', () => {
  it('a few at a time, in the order they came', async () => {
    const clock = new ManualClock();
    const turns = new StartTurns(clock, { atOnce: 2 });
    const { begun, ends, start, settle } = pods(turns, clock);
    const all = ['a', 'b', 'c', 'd'].map((name) => start(name));
    await settle();
    assert.deepEqual(begun, ['a', 'b']);
    assert.equal(turns.waiting, 2);
    ends.get('b')?.resolve();
    await settle();
    assert.deepEqual(begun, ['a', 'b', 'c']);
    ends.get('a')?.reject(new Error('no sandbox'));
    await assert.rejects(all[0] ?? Promise.resolve(), /no sandbox/);
    await settle();
    assert.deepEqual(begun, ['a', 'b', 'c', 'd']);
    for (const { resolve } of ends.values()) resolve();
    await Promise.all(all.slice(1));
  });

  it('one that takes too long goes on beside the others', async () => {
    const clock = new ManualClock();
    const turns = new StartTurns(clock, { atOnce: 1 });
    const { begun, ends, start } = pods(turns, clock);
    const slow = start('slow');
    const next = start('next');
    await clock.advance(4999);
    assert.deepEqual(begun, ['slow']);
    await clock.advance(1);
    assert.deepEqual(begun, ['slow', 'next']);
    ends.get('next')?.resolve();
    await next;
    ends.get('slow')?.resolve();
    await slow;
  });

  it('what is too long depends on how long starts take here', async () => {
    const clock = new ManualClock();
    const turns = new StartTurns(clock, { atOnce: 1 });
    const { ends, start } = pods(turns, clock);
    for (const [ms, holdMs] of [
      [800, 3200],
      [100, 3200],
      [100, 1000],
      [60_000, 3200],
      [60_000, 3200],
      [60_000, 10_000],
    ] as const) {
      const one = start('one');
      await clock.advance(ms);
      ends.get('one')?.resolve();
      await one;
      assert.equal(turns.holdMs, holdMs);
    }
  });

  it('one that only waits leaves its turn at once, and says nothing of how long starts take', async () => {
    const clock = new ManualClock();
    const turns = new StartTurns(clock, { atOnce: 1 });
    const hooks = Array.from({ length: 50 }, () => Promise.withResolvers<void>());
    const waiting = hooks.map(({ promise }) => turns.run(signal, (turn) => (turn.leave(), promise)));
    const { begun, ends, start, settle } = pods(turns, clock);
    const good = start('good');
    await settle();
    assert.deepEqual(begun, ['good']);
    assert.equal(clock.monotonic(), 0);
    await clock.advance(100);
    ends.get('good')?.resolve();
    await good;
    await turns.quiet(signal);
    assert.equal(turns.holdMs, 1000);
    await clock.advance(60_000);
    for (const { resolve } of hooks) resolve();
    await Promise.all(waiting);
    assert.equal(turns.holdMs, 1000);
  });

  it('one that comes back has its old place in line, and holds its new turn as others do', async () => {
    const clock = new ManualClock();
    const turns = new StartTurns(clock, { atOnce: 1 });
    const { begun, ends, start, settle } = pods(turns, clock);
    const volumes = Promise.withResolvers<void>();
    const back = turns.run(signal, async (turn) => {
      turn.leave();
      await volumes.promise;
      await turn.resume(async () => {
        begun.push('back');
        await new Promise<void>((resolve, reject) => ends.set('back', { resolve, reject }));
      });
    });
    const others = ['a', 'b'].map((name) => start(name));
    await settle();
    volumes.resolve();
    await settle();
    assert.deepEqual([begun, turns.waiting], [['a'], 2]);
    ends.get('a')?.resolve();
    await settle();
    assert.deepEqual(begun, ['a', 'back']);
    await clock.advance(10_000);
    assert.deepEqual(begun, ['a', 'back', 'b']);
    for (const { resolve } of ends.values()) resolve();
    await Promise.all([back, ...others]);
  });

  it('one that is stopped while it waits leaves the queue', async () => {
    const clock = new ManualClock();
    const turns = new StartTurns(clock, { atOnce: 1 });
    const { begun, ends, start, settle } = pods(turns, clock);
    const first = start('first');
    const stop = new AbortController();
    const second = start('second', stop.signal);
    const third = start('third');
    stop.abort(new Error('deleted'));
    await assert.rejects(second, /deleted/);
    ends.get('first')?.resolve();
    await first;
    await settle();
    assert.deepEqual(begun, ['first', 'third']);
    ends.get('third')?.resolve();
    await third;
  });

  it('says when nobody starts', async () => {
    const clock = new ManualClock();
    const turns = new StartTurns(clock, { atOnce: 1 });
    const { ends, start, settle } = pods(turns, clock);
    await turns.quiet(signal);
    const both = [start('a'), start('b')];
    let isQuiet = false;
    const quiet = turns.quiet(signal).then(() => (isQuiet = true));
    await settle();
    ends.get('a')?.resolve();
    await settle();
    assert.equal(isQuiet, false, 'b has its turn now');
    ends.get('b')?.resolve();
    await Promise.all([...both, quiet]);
  });

  it('is quiet beside one that gave its turn up', async () => {
    const clock = new ManualClock();
    const turns = new StartTurns(clock, { atOnce: 1 });
    const { ends, start } = pods(turns, clock);
    const slow = start('slow');
    await clock.advance(5000);
    await turns.quiet(signal);
    ends.get('slow')?.resolve();
    await slow;
  });

  it('more of them while the processors are idle, up to a limit', async () => {
    const clock = new ManualClock();
    let idle = 0.3;
    const turns = new StartTurns(clock, { atOnce: 2, idleShare: () => idle });
    const { begun, ends, start } = pods(turns, clock);
    const all = Array.from({ length: 12 }, (_, i) => start(String(i)));
    await clock.advance(1000);
    assert.equal(begun.length, 2, 'the machine is busy');
    idle = 0.6;
    await clock.advance(250);
    assert.equal(begun.length, 3);
    await clock.advance(3000);
    assert.equal(begun.length, 8, 'four times as many at most');
    for (let left = all.length; left > 0; left--) {
      for (const { resolve } of ends.values()) resolve();
      await clock.advance(0);
    }
    await Promise.all(all);
    await clock.advance(250);
    assert.deepEqual([begun.length, clock.pending], [12, 0]);
  });
});
