import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import { emptySnapshot, type ObservedState } from '../core/snapshot.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { cameTrue, HintFollower } from './hints.ts';

const forever = new AbortController().signal;
const UID = podUid('u');

function setup(first: ObservedState | undefined) {
  const clock = new ManualClock();
  const world: {
    state: ObservedState | undefined;
    uid: string;
    cached?: ObservedState | undefined;
    mutations: boolean;
    removed?: boolean;
    failsOnce?: boolean;
  } = { state: first, uid: UID, mutations: false };
  const log = { looks: 0, refreshes: [] as number[] };
  const follower = new HintFollower({
    clock,
    log: silentLogger,
    cache: {
      ownerOf: () => undefined,
      stateOf: () => world.cached,
      isRemoved: () => world.removed === true,
      recordNews: (_uid, _id, news) => world.mutations && news === 'started',
      refresh: async (uid) => {
        log.refreshes.push(clock.monotonic());
        world.cached = world.state;
        return emptySnapshot(uid, 'p', 'n');
      },
    },
    look: async () => {
      log.looks++;
      if (world.failsOnce === true) {
        world.failsOnce = false;
        throw new Error('no answer');
      }
      return world.state === undefined ? undefined : { uid: world.uid, state: world.state };
    },
  });
  return { clock, world, log, follower };
}

describe('HintFollower', () => {
  it('follows a newer hint also when the earlier one failed', async () => {
    const t = setup('running');
    t.world.failsOnce = true;
    t.follower.follow({ id: 'c', podUid: '', expect: 'started' }, forever);
    t.follower.follow({ id: 'c', podUid: '', expect: 'stopped' }, forever);
    t.world.state = 'exited';
    await t.clock.advance(30);
    assert.equal(t.log.refreshes.length, 1);
    await t.follower.idle();
  });

  it('reads the pod once the runtime shows what the event said', async () => {
    const t = setup('running');
    t.follower.follow({ id: 'c', podUid: '', expect: 'stopped' }, forever);
    await t.clock.advance(30);
    assert.deepEqual(t.log.refreshes, []);
    t.world.state = 'exited';
    await t.clock.advance(30);
    assert.equal(t.log.refreshes.length, 1);
    await t.clock.advance(10_000);
    assert.equal(t.log.refreshes.length, 1);
    assert.equal(t.clock.pending, 0);
  });

  it('looks at once when another event about the same thing comes', async () => {
    const t = setup('running');
    t.follower.follow({ id: 'c', podUid: '', expect: 'stopped' }, forever);
    await t.clock.advance(400);
    t.world.state = 'exited';
    t.follower.follow({ id: 'c', podUid: '', expect: 'stopped' }, forever);
    await t.clock.advance(0);
    assert.deepEqual(t.log.refreshes, [400]);
  });

  it('asks nothing about what was removed by ourselves', async () => {
    const t = setup(undefined);
    t.world.removed = true;
    for (const podUid of ['', 'u']) t.follower.follow({ id: 'c', podUid, expect: 'gone' }, forever);
    await t.clock.advance(5000);
    assert.deepEqual([t.log.refreshes.length, t.log.looks], [0, 0]);
  });

  it('reads the pod anyway when it does not come true in two seconds, and gives up', async () => {
    const t = setup('running');
    t.follower.follow({ id: 'c', podUid: '', expect: 'stopped' }, forever);
    await t.clock.advance(5000);
    assert.equal(t.log.refreshes.length, 1);
    assert.ok(t.log.looks < 40);
    await t.follower.idle();
  });

  for (const [cached, expect, reads] of [
    ['running', 'started', 0],
    ['exited', 'started', 0],
    ['exited', 'stopped', 0],
    ['created', 'started', 1],
    ['running', 'stopped', 1],
    [undefined, 'started', 1],
    ['exited', 'gone', 1],
    [undefined, 'gone', 1],
  ] as const)
    it(`reads the pod ${reads} times when ${cached ?? 'nothing'} is known and ${expect} is told`, async () => {
      const t = setup(expect === 'gone' ? undefined : expect === 'started' ? 'running' : 'exited');
      t.world.cached = cached;
      t.follower.follow({ id: 'c', podUid: 'u', expect }, forever);
      await t.clock.advance(0);
      assert.deepEqual([t.log.refreshes.length, t.log.looks], [reads, 0]);
    });

  for (const [expect, said, reads] of [
    ['started', 'u', 0],
    ['started', '', 0],
    ['stopped', 'u', 1],
  ] as const)
    it(`reads a pod that somebody has in hand ${reads} times when ${expect} is told ${said === '' ? 'without' : 'with'} its name`, async () => {
      const t = setup(expect === 'started' ? 'running' : 'exited');
      t.world.mutations = true;
      t.follower.follow({ id: 'c', podUid: said, expect }, forever);
      await t.clock.advance(5000);
      assert.equal(t.log.refreshes.length, reads);
      assert.equal(t.clock.pending, 0);
    });

  it('goes on looking when the pod it read does not show it yet', async () => {
    const t = setup('running');
    t.follower.follow({ id: 'c', podUid: 'u', expect: 'stopped' }, forever);
    await t.clock.advance(10);
    t.world.state = 'exited';
    await t.clock.advance(100);
    assert.equal(t.log.refreshes.length, 2);
    assert.equal(t.clock.pending, 0);
  });

  it('does not read a pod that nobody knows', async () => {
    const t = setup(undefined);
    t.follower.follow({ id: 'c', podUid: '', expect: 'gone' }, forever);
    await t.clock.advance(0);
    assert.deepEqual(t.log.refreshes, []);
  });

  it('ends with its signal', async () => {
    const t = setup('running');
    const stop = new AbortController();
    t.follower.follow({ id: 'c', podUid: '', expect: 'stopped' }, stop.signal);
    await t.clock.advance(10);
    stop.abort();
    await t.follower.idle();
    assert.equal(t.clock.pending, 0);
  });

  it('knows when an event has come true', () => {
    const at = (state: ObservedState) => ({ uid: 'u', state });
    assert.ok(cameTrue(at('exited'), 'started'));
    assert.ok(!cameTrue(at('created'), 'started'));
    assert.ok(!cameTrue(undefined, 'started'));
    assert.ok(cameTrue(undefined, 'stopped'));
    assert.ok(!cameTrue(at('running'), 'stopped'));
    assert.ok(cameTrue(at('created'), 'any'));
    assert.ok(!cameTrue(at('exited'), 'gone'));
  });
});
