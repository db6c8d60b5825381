import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import { nextTurn, PullTurns, type RunningTurn, type WaitingTurn } from './pull-turns.ts';

const NOW = 100_000;
const waits = (registry: string, sizeBytes?: number, forMs = 0): WaitingTurn => ({
  registry,
  sizeBytes,
  sinceMs: NOW - forMs,
});
const runs = (registry: string, forMs = 0): RunningTurn => ({ registry, sinceMs: NOW - forMs });
const PARALLEL = { atOnce: 2, inOrder: false };

describe('whose pull is next', () => {
  for (const [name, waiting, running, options, expected] of [
    ['nobody waits', [], [], PARALLEL, undefined],
    ['serial: in order, whatever the size', [waits('a', 9), waits('a', 1)], [], { atOnce: 1, inOrder: true }, 0],
    ['serial: never two', [waits('b', 1, 90_000)], [runs('a', 90_000)], { atOnce: 1, inOrder: true }, undefined],
    ['small ones first', [waits('a', 9), waits('a', 1), waits('a', 5)], [runs('a')], PARALLEL, 1],
    ['what is not known comes last', [waits('a'), waits('a', 5)], [], PARALLEL, 1],
    ['equal ones in order', [waits('a', 5), waits('a', 5)], [], PARALLEL, 0],
    ['a registry without a pull under way first', [waits('a', 1), waits('b', 9)], [runs('a')], PARALLEL, 1],
    ['who has waited a minute is next', [waits('a', 9, 61_000), waits('a', 1)], [runs('a')], PARALLEL, 0],
    ['the bound holds', [waits('b', 1)], [runs('a'), runs('a')], PARALLEL, undefined],
    [
      'slow pulls of another registry do not count',
      [waits('b', 1)],
      [runs('a', 31_000), runs('a', 31_000)],
      PARALLEL,
      0,
    ],
    [
      'slow pulls of the same registry do',
      [waits('a', 1)],
      [runs('a', 31_000), runs('a', 31_000)],
      PARALLEL,
      undefined,
    ],
    [
      'never more than twice the bound',
      [waits('c', 1)],
      [runs('a', 31_000), runs('a', 31_000), runs('b', 31_000), runs('b', 31_000)],
      PARALLEL,
      undefined,
    ],
    ['without a bound all', [waits('a')], [runs('a'), runs('a'), runs('a')], { atOnce: Infinity, inOrder: false }, 0],
  ] as const)
    it(name, () => assert.equal(nextTurn(waiting, running, options, NOW), expected));
});

describe('turns of pulls', () => {
  const forever = new AbortController().signal;
  const setup = (options = PARALLEL) => {
    const clock = new ManualClock();
    const turns = new PullTurns(clock, options);
    const started: string[] = [];
    const ends = new Map<string, () => void>();
    const pull = (name: string, signal = forever): Promise<void> =>
      turns.run({ registry: name.slice(0, 1), sizeBytes: undefined }, signal, () => {
        started.push(name);
        return new Promise((resolve) => ends.set(name, resolve));
      });
    return { clock, turns, started, ends, pull };
  };

  it('a registry that hangs holds up no other, once it is known to be slow', async () => {
    const t = setup();
    const all = ['a1', 'a2', 'a3', 'b1'].map((name) => t.pull(name));
    await t.clock.advance(29_000);
    assert.deepEqual(t.started, ['a1', 'a2']);
    await t.clock.advance(2000);
    assert.deepEqual(t.started, ['a1', 'a2', 'b1']);
    assert.equal(t.turns.waiting, 1);
    t.ends.get('a1')?.();
    t.ends.get('b1')?.();
    await Promise.all([all[0], all[3]]);
    await t.clock.advance(0);
    assert.deepEqual(t.started, ['a1', 'a2', 'b1', 'a3']);
    for (const end of t.ends.values()) end();
    await Promise.all(all);
    assert.equal(t.clock.pending, 0);
  });

  it('who leaves the queue is not started', async () => {
    const t = setup({ atOnce: 1, inOrder: true });
    const leaving = new AbortController();
    const first = t.pull('a1');
    const second = t.pull('a2', leaving.signal);
    leaving.abort(new Error('gone'));
    await assert.rejects(second, /gone/);
    t.ends.get('a1')?.();
    await first;
    assert.deepEqual(t.started, ['a1']);
    assert.equal(t.turns.waiting, 0);
  });
});
