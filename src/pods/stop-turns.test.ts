import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import { StopTurns } from './stop-turns.ts';

const { signal } = new AbortController();
const GRACE = 30;

/** Stops that end when told to, beside processors that are as idle as said. */
function crowd(atOnce: number) {
  const clock = new ManualClock();
  const idle = { share: 0 };
  const turns = new StopTurns(clock, { atOnce, idleShare: () => idle.share });
  const begun: string[] = [];
  const ends = new Map<string, { resolve: () => void; reject: (err: Error) => void }>();
  const stop = (name: string, graceSeconds = GRACE, own: AbortSignal = signal): Promise<void> =>
    turns.run(graceSeconds, own, () => {
      begun.push(name);
      return new Promise<void>((resolve, reject) => ends.set(name, { resolve, reject }));
    });
  const finish = async (name: string): Promise<void> => {
    ends.get(name)?.resolve();
    await clock.advance(0);
  };
  return { clock, idle, turns, begun, ends, stop, finish };
}

describe('turns of pods that are stopped', () => {
  it('a few at a time while the processors are busy, in the order they came', async () => {
    const { clock, turns, begun, ends, stop, finish } = crowd(2);
    const all = ['a', 'b', 'c', 'd'].map((name) => stop(name));
    await clock.advance(0);
    assert.deepEqual(begun, ['a', 'b']);
    assert.equal(turns.waiting, 2);
    await finish('b');
    assert.deepEqual(begun, ['a', 'b', 'c']);
    ends.get('a')?.reject(new Error('hangs'));
    await assert.rejects(all[0] ?? Promise.resolve(), /hangs/);
    await clock.advance(0);
    assert.deepEqual(begun, ['a', 'b', 'c', 'd'], 'one that failed makes room, too');
    for (const name of ['c', 'd']) await finish(name);
    await Promise.all(all.slice(1));
    await clock.advance(50);
    assert.equal(clock.pending, 0, 'no timer is left');
  });

  it('all of them as soon as the processors have nothing to do, twice as many with every look', async () => {
    const { clock, idle, turns, begun, stop, finish } = crowd(2);
    idle.share = 0.9;
    const names = Array.from({ length: 17 }, (_, n) => `p${n}`);
    const all = names.map((name) => stop(name));
    const seen: number[] = [];
    for (let look = 0; look < 4; look++) {
      seen.push(begun.length);
      await clock.advance(50);
    }
    assert.deepEqual(seen, [2, 4, 8, 16]);
    assert.equal(turns.waiting, 0);
    for (const name of names) await finish(name);
    await Promise.all(all);
    await clock.advance(50);
    assert.equal(clock.pending, 0);
  });

  it('one that waits for its containers longer than a second makes room for the next', async () => {
    const { clock, begun, stop, finish } = crowd(1);
    const all = ['slow', 'next'].map((name) => stop(name));
    await clock.advance(999);
    assert.deepEqual(begun, ['slow']);
    await clock.advance(1);
    assert.deepEqual(begun, ['slow', 'next']);
    for (const name of begun.slice()) await finish(name);
    await Promise.all(all);
  });

  it('who has no grace to speak of does not wait', async () => {
    const { begun, stop, finish } = crowd(1);
    const all = [stop('first'), stop('forced', 1), stop('hard', 0)];
    assert.deepEqual(begun, ['first', 'forced', 'hard']);
    for (const name of begun.slice()) await finish(name);
    await Promise.all(all);
  });

  it('nobody waits for more than a sixth of its grace', async () => {
    const { clock, begun, stop, finish } = crowd(1);
    const all = [stop('first'), stop('second', 3)];
    await clock.advance(499);
    assert.deepEqual(begun, ['first']);
    await clock.advance(1);
    assert.deepEqual(begun, ['first', 'second']);
    for (const name of begun.slice()) await finish(name);
    await Promise.all(all);
  });

  it('nobody waits for more than five seconds, whatever its grace', async () => {
    const { clock, begun, stop, finish } = crowd(1);
    // Twenty that each give their turn up after a second would keep the last waiting for twenty.
    const names = Array.from({ length: 20 }, (_, n) => `p${n}`);
    const all = names.map((name) => stop(name, 3600));
    await clock.advance(4999);
    assert.equal(begun.length, 5);
    await clock.advance(1);
    assert.equal(begun.length, 20);
    for (const name of names) await finish(name);
    await Promise.all(all);
  });

  it('whose stop is called off leaves the line', async () => {
    const { clock, turns, begun, stop, finish } = crowd(1);
    const own = new AbortController();
    const first = stop('first');
    const second = stop('second', GRACE, own.signal);
    const third = stop('third');
    own.abort(new Error('less grace'));
    await assert.rejects(second, /less grace/);
    await finish('first');
    assert.deepEqual(begun, ['first', 'third']);
    await assert.rejects(stop('fourth', GRACE, own.signal), /less grace/);
    assert.equal(turns.waiting, 0);
    await finish('third');
    await Promise.all([first, third]);
    await clock.advance(50);
    assert.equal(clock.pending, 0);
  });

  it('tells when all are through', async () => {
    const { clock, turns, stop, finish } = crowd(1);
    await turns.quiet(signal);
    const all = ['a', 'b'].map((name) => stop(name));
    let quiet = false;
    const told = turns.quiet(signal).then(() => (quiet = true));
    await clock.advance(0);
    await finish('a');
    assert.equal(quiet, false);
    await finish('b');
    await Promise.all([told, ...all]);
    assert.equal(quiet, true);
    const given = new AbortController();
    const last = stop('c');
    const unheard = turns.quiet(given.signal);
    given.abort(new Error('no time'));
    await assert.rejects(unheard, /no time/);
    await finish('c');
    await last;
  });
});
