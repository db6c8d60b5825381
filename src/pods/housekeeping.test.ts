// What is stopped and taken away, and above all what is not: pods come while a pass goes on.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid, type PodUid } from '../core/ids.ts';
import { CONFIG_MIRROR, type Pod } from '../core/pod.ts';
import { aliveSnapshot } from '../core/snapshot.fixture.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Housekeeping, type Leftovers } from './housekeeping.ts';
import { endedState, initialState, next, type WorkerState } from './worker-state.ts';

const mirror: Pod = {
  metadata: { name: 'web-n1', namespace: 'n', uid: 'mirror', annotations: { [CONFIG_MIRROR]: 'h' } },
  spec: { containers: [] },
};

function setup(here: readonly PodUid[] = [], more: Partial<Leftovers> = {}) {
  const clock = new ManualClock();
  const known = new Set<PodUid>();
  const did: string[] = [];
  const workers = new Map<PodUid, WorkerState>();
  const observed: PodSnapshot[] = [];
  const world = {
    mirrors: [] as Pod[],
    mayRunStatic: false,
    ready: true,
    cannotStop: '',
    rejected: '',
    named: '',
    kept: new Set<string>(),
  };
  const told: string[][] = [];
  const remove = (what: string, uids: readonly PodUid[], isInUse: (uid: PodUid) => boolean): void =>
    void did.push(...uids.filter((uid) => !isInUse(uid)).map((uid) => `${what} ${uid}`));
  const leftovers: Leftovers = {
    dropRecords: () => undefined,
    removeMirrors: async (mirrors) => void did.push(...mirrors.map((m) => `mirror ${m.metadata.uid}`)),
    removeContainers: async (uids) => void did.push(...uids.map((uid) => `containers ${uid}`)),
    removeDirectories: async (of, isInUse) => remove('directory', of === 'found' ? here : of, isInUse),
    removeCgroups: async (isInUse) => remove('cgroup', here, isInUse),
    ...more,
  };
  const housekeeping = new Housekeeping({
    store: {
      all: () => [],
      byFullName: (name) => (name === world.named ? mirror : undefined),
      mirrors: () => world.mirrors,
      staticOf: () => undefined,
      has: (uid) => known.has(uid),
    },
    workers: {
      uids: () => [...workers.keys()],
      stateOf: (uid) => workers.get(uid),
      forget: (uid) => void workers.delete(uid),
      stop: (uid, request) => {
        if (uid === world.cannotStop) throw new TypeError('no requests');
        did.push(`stop ${uid} ${JSON.stringify(request)}`);
        workers.set(uid, next(workers.get(uid) ?? initialState, { on: 'stop', request, graceSeconds: 1 }, 0));
      },
      stopRefused: (uid) => {
        did.push(`stop refused ${uid}`);
        const stopped = { on: 'stop', request: { deleted: true }, graceSeconds: 1 } as const;
        workers.set(uid, next(initialState, stopped, 0));
      },
      mayRunStatic: () => world.mayRunStatic,
    },
    isRejected: (uid) => uid === world.rejected && !workers.has(uid),
    observed: { all: () => observed },
    leftovers,
    kept: () => ({
      mayBeWanted: ({ uid }) => world.kept.has(uid),
      tell: (kept) => void told.push(kept.map(({ uid }) => uid)),
    }),
    ready: () => world.ready,
    clock,
    log: silentLogger,
  });
  const stop = new AbortController();
  const running = housekeeping.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort();
    await running;
    assert.equal(clock.pending, 0, 'no timer is left');
  };
  return { told, clock, known, did, workers, observed, world, housekeeping, end };
}

describe('Housekeeping', () => {
  it('leaves a pod alone that came after the pass had begun', async () => {
    const gate = Promise.withResolvers<void>();
    const t = setup([podUid('orphan'), podUid('fresh')], { removeMirrors: () => gate.promise });
    await t.clock.advance(100);
    t.known.add(podUid('fresh'));
    gate.resolve();
    await t.clock.advance(100);
    assert.deepEqual(t.did, ['directory orphan', 'cgroup orphan']);
    await t.end();
  });

  it('does nothing before all sources have been heard', async () => {
    const t = setup([podUid('orphan')]);
    t.world.ready = false;
    t.observed.push(aliveSnapshot('orphan'));
    await t.clock.advance(20_000);
    assert.deepEqual(t.did, []);
    assert.equal(t.housekeeping.synced, false);
    t.world.ready = true;
    await t.clock.advance(15_000);
    assert.equal(t.housekeeping.synced, true);
    await t.end();
  });

  it('stops a pod that nobody knows while the cleaning of others hangs', async () => {
    const gate = Promise.withResolvers<void>();
    const t = setup([], { removeDirectories: () => gate.promise });
    await t.clock.advance(100);
    t.observed.push(aliveSnapshot('orphan'));
    t.housekeeping.wake();
    await t.clock.advance(100);
    assert.deepEqual(t.did, ['stop orphan {"deleted":true,"graceSeconds":1}']);
    gate.resolve();
    await t.end();
  });

  it('stops what runs of a pod that was refused, not of one that is still to be judged', async () => {
    const t = setup();
    for (const uid of ['refused', 'waiting']) {
      t.known.add(podUid(uid));
      t.observed.push(aliveSnapshot(uid));
    }
    t.world.rejected = 'refused';
    await t.clock.advance(100);
    assert.deepEqual(t.did, ['stop refused refused']);
    await t.end();
  });

  it('leaves a running pod and all it has alone while its manifest may be one that is broken', async () => {
    const t = setup(['web', 'stray'].map(podUid));
    t.observed.push({ ...aliveSnapshot('web'), name: mirror.metadata.name }, aliveSnapshot('stray'));
    t.world.mirrors = [mirror];
    t.world.kept.add('web');
    await t.clock.advance(100);
    assert.deepEqual(t.told, [['web']]);
    assert.deepEqual(t.did.splice(0), ['stop stray {"deleted":true,"graceSeconds":1}']);
    t.world.named = `${mirror.metadata.name}_n`;
    await t.clock.advance(15_000);
    assert.deepEqual(t.told.at(-1), [], 'another manifest has a pod of its name');
    assert.ok(t.did.includes('stop web {"deleted":true,"graceSeconds":1}'), t.did.join());
    await t.end();
  });

  it('stops a kept pod when its manifest is gone', async () => {
    const t = setup();
    t.observed.push(aliveSnapshot('web'));
    t.world.kept.add('web');
    await t.clock.advance(100);
    assert.deepEqual(t.did, []);
    t.world.kept.clear();
    await t.clock.advance(15_000);
    assert.deepEqual(t.did, ['stop web {"deleted":true,"graceSeconds":1}']);
    await t.end();
  });

  it('settles the other pods when one cannot be', async () => {
    const t = setup();
    t.workers.set(podUid('bad'), initialState);
    t.workers.set(podUid('good'), initialState);
    t.world.cannotStop = 'bad';
    await t.clock.advance(100);
    assert.deepEqual(t.did, ['stop good {"deleted":true}']);
    await t.end();
  });

  it('goes on with the next step when one fails', async () => {
    const t = setup([podUid('a')], { removeDirectories: () => Promise.reject(new Error('busy')) });
    await t.clock.advance(100);
    assert.deepEqual(t.did, ['cgroup a']);
    await t.end();
  });

  it('keeps the mirror pod until its static pod has stopped', async () => {
    const t = setup();
    t.world.mirrors = [mirror];
    t.world.mayRunStatic = true;
    await t.clock.advance(100);
    assert.deepEqual(t.did, []);
    t.world.mayRunStatic = false;
    t.housekeeping.wake();
    await t.clock.advance(100);
    assert.deepEqual(t.did, ['mirror mirror']);
    await t.end();
  });

  it('stops workers whose pod is gone, drops those that are done, keeps those that are wanted', async () => {
    const t = setup();
    const finished = next(endedState(true, 0), { on: 'cleanedUp' }, 0);
    t.workers.set(podUid('left'), initialState);
    t.workers.set(podUid('done'), finished);
    t.workers.set(podUid('kept'), finished);
    t.known.add(podUid('kept'));
    await t.clock.advance(100);
    assert.deepEqual(t.did, ['stop left {"deleted":true}', 'containers done']);
    assert.deepEqual([...t.workers.keys()], ['left', 'kept']);
    await t.end();
  });

  it('clears away pods that have just gone, and lists what is there now and then, however often it is woken', async () => {
    const t = setup([podUid('stray')]);
    await t.clock.advance(100);
    assert.deepEqual(t.did.splice(0), ['directory stray', 'cgroup stray']);
    t.workers.set(podUid('done'), next(endedState(true, 0), { on: 'cleanedUp' }, 0));
    t.housekeeping.wake();
    await t.clock.advance(100);
    assert.deepEqual(t.did.splice(0), ['containers done', 'directory done']);
    for (let second = 0; second < 16; second++) {
      t.housekeeping.wake();
      await t.clock.advance(1000);
    }
    assert.deepEqual(t.did, ['directory stray', 'cgroup stray']);
    await t.end();
  });
});
