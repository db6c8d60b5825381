import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid, type PodUid } from '../core/ids.ts';
import { uidOf, type Pod, type PodStatus } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { PodChanges, type PodChangesDeps } from './pod-changes.ts';
import { PodStore } from './pod-store.ts';
import { initialState, type WorkerState } from './worker-state.ts';

const gates = [{ conditionType: 'example.com/open' }];
const condition = (type: string, status: string) => ({ type, status }) as NonNullable<PodStatus['conditions']>[number];
const podWith = (status: PodStatus, more: Partial<Pod['spec']> = {}, annotations = {}): Pod => ({
  metadata: { name: 'p', namespace: 'n', uid: 'u', annotations },
  spec: { containers: [{ name: 'c' }], ...more },
  status,
});

type Admit = PodChangesDeps['admission']['admit'];

function setup(admit: Admit = async () => ({ ok: true })) {
  const did: string[] = [];
  const states = new Map<PodUid, WorkerState>();
  const statuses = new Map<PodUid, PodStatus>();
  const clock = new ManualClock();
  const store = new PodStore();
  const world = {
    sourcesReady: true,
    running: new Set<string>(),
    offered: [] as string[],
    shown: [] as unknown[],
    granted: [] as string[],
    retried: 0,
  };
  const changes: PodChanges = new PodChanges({
    store,
    workers: {
      stateOf: (uid) => states.get(uid),
      podOf: (uid) => (states.has(uid) ? named(uid) : undefined),
      uids: () => [...states.keys()],
      add: (pod) => {
        did.push(`add ${uidOf(pod)}`);
        states.set(uidOf(pod), initialState);
      },
      ensure: (pod) => void did.push(`ensure ${uidOf(pod)}`),
      stop: (uid, request) => void did.push(`stop ${uid} ${JSON.stringify(request)}`),
      wake: (uid) => void did.push(`wake ${uid}`),
    },
    status: {
      statusOf: (uid) => statuses.get(uid),
      set: (pod, status) => {
        did.push(`status ${uidOf(pod)} ${status.phase} ${status.reason}`);
        statuses.set(uidOf(pod), status);
        return status;
      },
    },
    admission: { admit },
    runsAlready: (pod) => world.running.has(uidOf(pod)),
    resizes: {
      allocated: (pod) => pod,
      admitted: (pod) => void world.granted.push(uidOf(pod)),
      offer: (pod) => void world.offered.push(`${uidOf(pod)} beside [${changes.active().map(uidOf).join(' ')}]`),
      retryPostponed: () => void world.retried++,
      shown: (pod, before) => void world.shown.push([before?.status?.phase, pod.status?.phase]),
    },
    sourcesReady: () => world.sourcesReady,
    onRemoved: () => undefined,
    onRefused: () => void did.push('look for orphans'),
    events: { pod: (pod, _type, reason) => void did.push(`event ${uidOf(pod)} ${reason}`), node: () => undefined },
    clock,
    log: silentLogger,
  });
  const stop = new AbortController();
  const running = changes.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort();
    await running;
    assert.equal(clock.pending, 0, 'no timer is left');
  };
  return { changes, did, states, clock, store, world, end };
}

const named = (uid: string, more: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: uid, namespace: 'n', uid, ...more },
  spec: { containers: [{ name: 'c' }] },
});

describe('the changes of the sources', () => {
  it('admit new pods by age, each with those before it', async () => {
    const seen: string[] = [];
    const t = setup(async (pod, active) => {
      seen.push(`${uidOf(pod)} beside [${active.map(uidOf).join(' ')}]`);
      return { ok: true };
    });
    const [young, old] = ['2026-01-02T00:00:00Z', '2026-01-01T00:00:00Z'];
    await t.changes.handle({
      op: 'ADD',
      pods: [named('young', { creationTimestamp: young }), named('old', { creationTimestamp: old })],
    });
    assert.deepEqual(seen, ['old beside []', 'young beside [old]']);
    assert.deepEqual(t.did, ['add old', 'add young']);
    await t.end();
  });

  it('grant resources to pods that are to run or still hold theirs, not to pods that ended before', async () => {
    const t = setup();
    const ended = (uid: string, phase: 'Failed' | 'Succeeded'): Pod => ({ ...named(uid), status: { phase } });
    const leaving = named('leaving', { deletionTimestamp: '2026-01-02T00:00:00Z' });
    await t.changes.handle({
      op: 'ADD',
      pods: [named('new'), ended('failed', 'Failed'), ended('done', 'Succeeded'), leaving],
    });
    assert.deepEqual(t.world.granted.toSorted(), ['leaving', 'new']);
    await t.end();
  });

  it('do not wait for an admission that hangs, which is given up after a while', async () => {
    const t = setup(async (pod) => (uidOf(pod) === 'stuck' ? new Promise<never>(() => undefined) : { ok: true }));
    t.states.set(podUid('other'), initialState);
    void t.changes.handle({ op: 'ADD', pods: [named('stuck'), named('next')] });
    await t.changes.handle({ op: 'UPDATE', pods: [named('other')] });
    await t.changes.handle({ op: 'REMOVE', pods: [named('other')] });
    assert.deepEqual(t.did, ['ensure other', 'stop other {"deleted":true}']);
    await t.clock.advance(180_000);
    assert.deepEqual(t.did.slice(2), ['event stuck UnexpectedAdmissionError', 'add next']);
    await t.end();
  });

  it('try an admission that failed again, and start nothing without one', async () => {
    let tries = 0;
    const t = setup(async () => {
      if (tries++ < 2) throw new Error('timeout waiting to kill pod');
      return { ok: true };
    });
    void t.changes.handle({ op: 'ADD', pods: [named('a')] });
    await t.clock.advance(1);
    void t.changes.handle({ op: 'UPDATE', pods: [named('a', { labels: { x: 'y' } })] });
    await t.clock.advance(500);
    assert.deepEqual(t.did, ['event a UnexpectedAdmissionError']);
    assert.deepEqual(t.changes.active(), []);
    assert.deepEqual(t.changes.unfinished().map(uidOf), ['a'], 'what it holds from an earlier run is still its own');
    await t.clock.advance(3000);
    assert.deepEqual(t.did.slice(1), ['event a UnexpectedAdmissionError', 'add a']);
    assert.equal(t.changes.active()[0]?.metadata.labels?.['x'], 'y');
    await t.end();
  });

  it('offer resizes when every pod has its place, so that none takes the room of a pod that is judged later', async () => {
    const t = setup();
    await t.changes.handle({ op: 'ADD', pods: [named('a'), named('b')] });
    await t.clock.advance(1);
    assert.deepEqual(t.world.offered, ['a beside [a b]', 'b beside [a b]']);
    // One that was updated or removed meanwhile is not offered again.
    t.world.offered.length = 0;
    void t.changes.handle({ op: 'ADD', pods: [named('c'), named('d')] });
    await t.changes.handle({ op: 'REMOVE', pods: [named('c')] });
    await t.clock.advance(1);
    assert.deepEqual(t.world.offered, ['d beside [a b d]']);
    await t.end();
  });

  it('let resizes go on that waited for a source, also for one that has no pods', async () => {
    const t = setup();
    await t.clock.advance(1);
    const before = t.world.retried;
    await t.changes.handle({ op: 'ADD', pods: [] });
    assert.equal(t.world.retried, before + 1);
    void t.changes.handle({ op: 'ADD', pods: [named('a')] });
    await t.changes.handle({ op: 'ADD', pods: [] });
    assert.equal(t.world.retried, before + 1, 'not while somebody is judged');
    await t.clock.advance(1);
    assert.equal(t.world.retried, before + 2);
    await t.end();
  });

  it('judge pods that run already first, then the oldest', async () => {
    const t = setup();
    t.world.running.add('b').add('d');
    const pods = ['c', 'd', 'a', 'b'].map((uid, i) => named(uid, { creationTimestamp: `2026-01-01T00:00:0${9 - i}Z` }));
    await t.changes.handle({ op: 'ADD', pods });
    assert.deepEqual(t.did, ['add b', 'add d', 'add a', 'add c']);
    await t.end();
  });

  it('leave a pod that is gone what it holds until its containers are stopped', async () => {
    const t = setup();
    await t.changes.handle({ op: 'ADD', pods: [named('a')] });
    await t.changes.handle({ op: 'REMOVE', pods: [named('a')] });
    const stopped = { evicted: false, deleted: true, restart: false, since: 0 };
    t.states.set(podUid('a'), { phase: 'terminating', graceSeconds: 30, ...stopped });
    assert.deepEqual(t.changes.unfinished().map(uidOf), ['a']);
    assert.deepEqual(t.changes.active(), [], 'it takes no part in admission');
    assert.deepEqual(t.changes.running().map(uidOf), ['a'], 'a machine that goes down waits for it');
    t.states.set(podUid('a'), { phase: 'terminated', ...stopped });
    assert.deepEqual(t.changes.unfinished(), []);
    assert.deepEqual(t.changes.running(), []);
    await t.end();
  });

  it('leave a rejected pod rejected', async () => {
    const t = setup(async () => ({ ok: false, reason: 'OutOfcpu', message: 'no' }));
    await t.changes.handle({ op: 'ADD', pods: [named('a')] });
    await t.changes.handle({ op: 'UPDATE', pods: [named('a')] });
    assert.deepEqual(t.did, ['event a OutOfcpu', 'status a Failed OutOfcpu', 'look for orphans']);
    await t.end();
  });

  it('call an admission off when its pod is removed or deleted', async () => {
    const called: string[] = [];
    const t = setup(
      (pod, _active, signal) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => {
            called.push(uidOf(pod));
            reject(new Error('aborted'));
          }),
        ),
    );
    void t.changes.handle({ op: 'ADD', pods: [named('removed'), named('deleted')] });
    await t.changes.handle({ op: 'REMOVE', pods: [named('removed')] });
    await t.clock.advance(1);
    await t.changes.handle({ op: 'DELETE', pods: [named('deleted', { deletionTimestamp: '2026-01-01T00:00:00Z' })] });
    await t.clock.advance(1);
    assert.deepEqual(called, ['removed', 'deleted']);
    assert.deepEqual(t.did, ['ensure deleted']);
    await t.end();
  });

  it('stop a removed pod at once, but not before all sources have been heard', async () => {
    const t = setup();
    await t.changes.handle({ op: 'ADD', pods: [named('a'), named('b')] });
    t.did.length = 0;
    t.world.sourcesReady = false;
    await t.changes.handle({ op: 'REMOVE', pods: [named('a')] });
    assert.deepEqual(t.did, []);
    t.world.sourcesReady = true;
    await t.changes.handle({ op: 'REMOVE', pods: [named('b')] });
    assert.deepEqual(t.did, ['stop b {"deleted":true}']);
    await t.end();
  });
});

describe('a status that came back from the API server', () => {
  const running: PodStatus = { phase: 'Running' };
  for (const [name, before, after, wakes] of [
    ['our own patch', podWith({ phase: 'Pending' }), podWith(running), false],
    [
      'a condition of somebody else',
      podWith(running),
      podWith({ ...running, conditions: [condition('x', 'True')] }),
      false,
    ],
    ['a phase that somebody else made final', podWith(running), podWith({ phase: 'Failed' }), true],
    [
      'an opened gate',
      podWith(running, { readinessGates: gates }),
      podWith({ ...running, conditions: [condition('example.com/open', 'True')] }, { readinessGates: gates }),
      true,
    ],
    [
      'our own patch of a pod with an open gate',
      podWith({ phase: 'Pending', conditions: [condition('example.com/open', 'True')] }, { readinessGates: gates }),
      podWith({ ...running, conditions: [condition('example.com/open', 'True')] }, { readinessGates: gates }),
      false,
    ],
  ] as const)
    it(`${name}: ${wakes ? 'the worker looks' : 'nobody is woken'}`, async () => {
      const t = setup();
      await t.changes.handle({ op: 'ADD', pods: [before] });
      t.did.length = 0;
      await t.changes.handle({ op: 'RECONCILE', pods: [after] });
      assert.deepEqual(t.did, wakes ? ['wake u'] : []);
      const shown = [before.status?.phase, after.status?.phase];
      assert.deepEqual(t.world.shown, [shown], 'resizes that wait are told');
      await t.end();
    });
});
