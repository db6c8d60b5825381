import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { podUid, type PodUid } from '../core/ids.ts';
import { CONFIG_MIRROR, CONFIG_SOURCE, type Pod, type PodStatus } from '../core/pod.ts';
import { ObjectStore } from '../kube/object-store.ts';
import { notFound, RecordingClient, unreachable, type Answer } from '../kube/recording-client.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { StatusSync } from './status-sync.ts';

const U = podUid('U');
const PATH = '/api/v1/namespaces/ns/pods/p';
const apiPod = (status: PodStatus, more: Partial<Pod['metadata']> = {}, version = 5): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'U', resourceVersion: String(version), ...more },
  spec: { containers: [] },
  status,
});
type Entry = { pod: Pod; status: PodStatus; version: number; finished: boolean };

function open(answer: Answer): {
  sync: StatusSync;
  client: RecordingClient;
  clock: ManualClock;
  watched: ObjectStore<Pod>;
  statuses: Map<PodUid, Entry>;
  running: Set<PodUid>;
  stop: () => Promise<void>;
} {
  const clock = new ManualClock();
  const client = new RecordingClient(answer);
  const watched = new ObjectStore<Pod>();
  const statuses = new Map<PodUid, Entry>();
  const running = new Set<PodUid>();
  const desired = {
    get: (uid: PodUid) => statuses.get(uid),
    all: () => statuses.entries(),
    delete: (uid: PodUid) => void statuses.delete(uid),
  };
  const mayBeRunning = (uid: PodUid): boolean => running.has(uid);
  const sync = new StatusSync({ client, statuses: desired, watched, mayBeRunning, clock, log: silentLogger });
  const end = new AbortController();
  const done = sync.run(end.signal);
  const stop = async (): Promise<void> => {
    end.abort();
    await done;
    assert.equal(clock.pending, 0);
  };
  return { sync, client, clock, watched, statuses, running, stop };
}

/** Applies status patches well enough for these tests: whole fields only. */
const patched = (call: { body?: unknown }, base: Pod, version = 6): Pod => {
  const status = (call.body as { status: PodStatus }).status;
  return {
    ...base,
    metadata: { ...base.metadata, resourceVersion: String(version) },
    status: { ...base.status, ...status },
  };
};

describe('StatusSync', () => {
  it('sends one patch with the UID, based on the watched copy, and nothing when nothing differs', async () => {
    const base = apiPod({ phase: 'Pending', qosClass: 'BestEffort' });
    const t = open((call) => patched(call, base));
    t.watched.set(base);
    t.statuses.set(U, { pod: base, status: { phase: 'Running', qosClass: 'BestEffort' }, version: 1, finished: false });
    t.sync.wake(U);
    await t.clock.advance(0);
    assert.deepEqual(t.client.calls, [
      { verb: 'PATCH', target: `${PATH}/status`, body: { metadata: { uid: 'U' }, status: { phase: 'Running' } } },
    ]);
    t.sync.wake(U); // the watch still shows the old copy; our own answer is newer
    await t.clock.advance(60_000);
    assert.equal(t.client.calls.length, 1);
    await t.stop();
  });

  it('holds on to no answer about a pod that is gone', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    let answer: WeakRef<Pod> | undefined;
    const t = open((call) => {
      if (call.verb === 'GET') return undefined;
      const made = patched(call, apiPod({ phase: 'Pending' }));
      answer = new WeakRef(made);
      return made;
    });
    const base = apiPod({ phase: 'Pending' });
    t.watched.set(base);
    t.statuses.set(U, { pod: base, status: { phase: 'Running' }, version: 1, finished: false });
    t.sync.wake(U);
    await t.clock.advance(0);
    assert.ok(answer?.deref());
    t.watched.delete(base); // somebody removed it by force, and the worker says its last word
    t.statuses.set(U, { pod: base, status: { phase: 'Failed' }, version: 2, finished: true });
    t.sync.wake(U);
    await t.clock.advance(0);
    t.statuses.delete(U);
    t.client.calls.length = 0;
    await t.clock.advance(20_000);
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    assert.equal(answer?.deref(), undefined);
    await t.stop();
  });

  it('writes again what somebody else overwrote', async () => {
    const base = apiPod({ phase: 'Running' });
    const t = open((call) => patched(call, base, 8));
    t.watched.set(base);
    t.statuses.set(U, { pod: base, status: { phase: 'Running' }, version: 1, finished: false });
    t.sync.wake(U);
    await t.clock.advance(0);
    const spoilt = apiPod({ phase: 'Failed' }, {}, 7);
    t.watched.set(spoilt);
    t.sync.apiPodsChanged([{ after: undefined }, { after: spoilt }]);
    await t.clock.advance(0);
    assert.deepEqual(t.client.log, [`PATCH ${PATH}/status`]);
    await t.stop();
  });

  it('holds a final phase back while containers may run, and sends it without being woken', async () => {
    const base = apiPod({ phase: 'Running' });
    const t = open((call) => patched(call, base));
    t.watched.set(base);
    t.running.add(U);
    t.statuses.set(U, { pod: base, status: { phase: 'Succeeded' }, version: 1, finished: false });
    t.sync.wake(U);
    await t.clock.advance(0);
    assert.deepEqual(t.client.log, []);
    t.running.delete(U);
    await t.clock.advance(10_000);
    assert.deepEqual(t.client.log, [`PATCH ${PATH}/status`]);
    await t.stop();
  });

  it('deletes a pod that is being deleted, finished and final, with grace 0 and its UID', async () => {
    const base = apiPod({ phase: 'Running' }, { deletionTimestamp: 'T' });
    const t = open((call) => (call.verb === 'PATCH' ? patched(call, base) : {}));
    t.watched.set(base);
    t.statuses.set(U, { pod: base, status: { phase: 'Succeeded' }, version: 1, finished: false });
    t.sync.wake(U);
    await t.clock.advance(0);
    assert.deepEqual(t.client.log, [`PATCH ${PATH}/status`]);
    t.statuses.set(U, { pod: base, status: { phase: 'Succeeded' }, version: 1, finished: true });
    t.sync.wake(U);
    await t.clock.advance(0);
    assert.deepEqual(t.client.calls[1], {
      verb: 'DELETE',
      target: PATH,
      body: { gracePeriodSeconds: 0, preconditions: { uid: 'U' } },
    });
    await t.clock.advance(60_000);
    assert.equal(t.client.calls.length, 2);
    await t.stop();
  });

  it('does not ask about a pod that it has deleted itself', async () => {
    const base = apiPod({ phase: 'Succeeded' }, { deletionTimestamp: 'T' });
    const t = open((call) => (call.verb === 'GET' ? undefined : {}));
    t.watched.set(base);
    t.statuses.set(U, { pod: base, status: { phase: 'Succeeded' }, version: 1, finished: true });
    t.sync.wake(U);
    await t.clock.advance(0);
    t.watched.delete(base);
    t.sync.wake(U); // our own last patch came back by the watch
    await t.clock.advance(60_000);
    assert.deepEqual(t.client.log, [`DELETE ${PATH}`]);
    await t.stop();
  });

  it('sends the generation of a pod that goes with its next status, or after a second', async () => {
    const condition = { type: 'Ready', status: 'True' as const, observedGeneration: 1 };
    const seen: PodStatus = { phase: 'Running', observedGeneration: 1, conditions: [condition] };
    const next: PodStatus = { ...seen, observedGeneration: 2, conditions: [{ ...condition, observedGeneration: 2 }] };
    const base = apiPod(seen, { deletionTimestamp: 'T' });
    const t = open((call) => patched(call, base));
    t.watched.set(base);
    t.statuses.set(U, { pod: base, status: next, version: 1, finished: false });
    t.sync.wake(U);
    await t.clock.advance(999);
    assert.deepEqual(t.client.log, []);
    await t.clock.advance(1);
    assert.deepEqual(t.client.log.splice(0), [`PATCH ${PATH}/status`]);
    await t.stop();

    const quick = open((call) => patched(call, base));
    quick.watched.set(base);
    quick.statuses.set(U, { pod: base, status: next, version: 1, finished: false });
    quick.sync.wake(U);
    await quick.clock.advance(500);
    quick.statuses.set(U, { pod: base, status: { ...next, reason: 'gone' }, version: 2, finished: false });
    quick.sync.wake(U);
    await quick.clock.advance(60_000);
    assert.deepEqual(quick.client.log, [`PATCH ${PATH}/status`]);
    await quick.stop();
  });

  it('sends the last status of a pod that goes with its final phase, or after a second', async () => {
    const base = apiPod({ phase: 'Running' }, { deletionTimestamp: 'T' });
    const last: PodStatus = { phase: 'Succeeded', podIP: '10.0.0.9' };
    const bodies = async (stoppedAfterMs: number): Promise<unknown[]> => {
      const t = open((call) => patched(call, base));
      t.watched.set(base);
      t.running.add(U);
      t.statuses.set(U, { pod: base, status: last, version: 1, finished: false });
      t.sync.wake(U);
      await t.clock.advance(stoppedAfterMs);
      t.running.delete(U);
      t.sync.wake(U);
      await t.clock.advance(60_000);
      await t.stop();
      return t.client.calls.map(({ body }) => (body as { status: unknown }).status);
    };
    assert.deepEqual(await bodies(999), [{ phase: 'Succeeded', podIP: '10.0.0.9' }]);
    assert.deepEqual(await bodies(1000), [{ podIP: '10.0.0.9' }, { phase: 'Succeeded' }]);
  });

  it('never deletes a pod nobody asked to delete', async () => {
    const base = apiPod({ phase: 'Running' });
    const t = open((call) => patched(call, base));
    t.watched.set(base);
    t.statuses.set(U, { pod: base, status: { phase: 'Failed' }, version: 1, finished: true });
    t.sync.wake(U);
    await t.clock.advance(30_000);
    assert.deepEqual(t.client.log, [`PATCH ${PATH}/status`]);
    await t.stop();
  });

  for (const [kind, status] of [
    ['conflict', 409],
    ['invalid', 422],
  ] as const)
    it(`reads the pod after an answer of ${status} and tries again`, async () => {
      const stale = apiPod({ phase: 'Pending' });
      let first = true;
      const t = open((call) => {
        if (call.verb === 'GET') return apiPod({ phase: 'Pending', reason: 'x' }, {}, 9);
        if (first) {
          first = false;
          throw new KubeletError(kind, 'uid', { detail: { status } });
        }
        return patched(call, stale, 10);
      });
      t.watched.set(stale);
      t.statuses.set(U, { pod: stale, status: { phase: 'Running' }, version: 1, finished: false });
      t.sync.wake(U);
      await t.clock.advance(0);
      assert.deepEqual(t.client.log, [`PATCH ${PATH}/status`, `GET ${PATH}`, `PATCH ${PATH}/status`]);
      assert.deepEqual(t.client.calls[2]?.body, { metadata: { uid: 'U' }, status: { phase: 'Running', reason: null } });
      await t.stop();
    });

  it('drops the status of a pod whose name belongs to another one now', async () => {
    const t = open((call) => (call.verb === 'GET' ? apiPod({}, { uid: 'other' }) : undefined));
    t.statuses.set(U, { pod: apiPod({}), status: { phase: 'Running' }, version: 1, finished: false });
    t.sync.wake(U);
    await t.clock.advance(0);
    assert.deepEqual(t.client.log, [`GET ${PATH}`]);
    assert.equal(t.statuses.size, 0);
    await t.stop();
  });

  it('a pod the server does not have is asked for once per change', async () => {
    const t = open(() => {
      throw notFound('pod');
    });
    t.statuses.set(U, { pod: apiPod({}), status: { phase: 'Running' }, version: 1, finished: false });
    t.sync.wake(U);
    await t.clock.advance(60_000);
    assert.deepEqual(t.client.log, [`GET ${PATH}`]);
    await t.stop();
  });

  it('an outage: tries on, and is done within two seconds after it', async () => {
    const base = apiPod({ phase: 'Pending' });
    let down = true;
    const t = open((call) => {
      if (down) throw unreachable();
      return patched(call, base);
    });
    t.watched.set(base);
    t.statuses.set(U, { pod: base, status: { phase: 'Running' }, version: 1, finished: false });
    t.sync.wake(U);
    await t.clock.advance(60_000);
    assert.ok(t.client.calls.length < 60);
    down = false;
    const before = t.client.calls.length;
    await t.clock.advance(2000);
    assert.equal(t.client.calls.length, before + 1);
    await t.stop();
  });

  it('a server that refuses a status is asked as often as upstream asks, and at once for another', async () => {
    const base = apiPod({ phase: 'Pending' });
    const refusal = new KubeletError('invalid', 'no', { detail: { status: 422 } });
    const t = open((call) => (call.verb === 'GET' ? base : Promise.reject(refusal)));
    t.watched.set(base);
    t.statuses.set(U, { pod: base, status: { phase: 'Running' }, version: 1, finished: false });
    t.sync.wake(U);
    await t.clock.advance(600_000);
    const { length } = t.client.calls;
    assert.ok(length <= 3 * 66, `${length} requests in ten minutes`);
    t.sync.wake(U);
    await t.clock.advance(0);
    assert.equal(t.client.calls.length, length + 3);
    await t.stop();
  });

  it('a static pod’s status goes to its mirror, and again to a new mirror', async () => {
    const fixed: Pod = {
      metadata: { name: 'p', namespace: 'ns', uid: 'static', annotations: { [CONFIG_SOURCE]: 'file' } },
      spec: { containers: [] },
    };
    const mirror = (uid: string, version: number): Pod =>
      apiPod({ phase: 'Pending' }, { uid, annotations: { [CONFIG_MIRROR]: 'h' } }, version);
    const t = open((call) => patched(call, mirror('M1', 5), 20));
    t.statuses.set(podUid('static'), { pod: fixed, status: { phase: 'Running' }, version: 1, finished: false });
    t.sync.wake(podUid('static'));
    await t.clock.advance(20_000);
    assert.deepEqual(t.client.log, [], 'no mirror: nothing to say and nobody to ask');
    for (const [uid, version] of [
      ['M1', 5],
      ['M2', 30],
    ] as const) {
      t.watched.set(mirror(uid, version));
      t.sync.apiPodChanged(mirror(uid, version));
      await t.clock.advance(0);
    }
    const uids = t.client.calls.map((c) => (c.body as { metadata: { uid: string } }).metadata.uid);
    assert.deepEqual(uids, ['M1', 'M2']);
    await t.stop();
  });

  it('patches that hang keep no other pod from being told', async () => {
    const hung = Promise.withResolvers<Pod>();
    const t = open((call) => (call.target.includes('/slow-') ? hung.promise : patched(call, apiPod({}))));
    const tell = (name: string): void => {
      const pod = { ...apiPod({ phase: 'Pending' }), metadata: { name, namespace: 'ns', uid: name } };
      t.watched.set(pod);
      t.statuses.set(podUid(name), { pod, status: { phase: 'Running' }, version: 1, finished: false });
      t.sync.wake(podUid(name));
    };
    for (let i = 0; i < 20; i++) tell(`slow-${i}`);
    tell('good');
    const told = (): number => t.client.calls.length;
    await t.clock.advance(999);
    assert.equal(told(), 4, 'a few at a time');
    for (let seconds = 0; seconds < 5; seconds++) await t.clock.advance(1000);
    assert.equal(t.client.calls.at(-1)?.target, '/api/v1/namespaces/ns/pods/good/status');
    hung.resolve(apiPod({}));
    await t.stop();
  });

  it('a pod whose data makes no sense keeps no other pod from being told', async () => {
    const [bad, good] = [podUid('bad'), podUid('good')];
    const of = (uid: string): Pod => apiPod({ phase: 'Pending' }, { uid, name: uid });
    const t = open((call) => patched(call, of(call.target.includes('good') ? 'good' : 'bad')));
    for (const uid of [bad, good]) {
      t.watched.set(of(uid));
      t.statuses.set(uid, { pod: of(uid), status: { phase: 'Running' }, version: 1, finished: false });
      t.sync.wake(uid);
    }
    await t.clock.advance(0);
    const broken = { metadata: null, spec: null } as unknown as Pod;
    t.statuses.set(bad, { pod: broken, status: { phase: 'Running' }, version: 1, finished: false });
    t.statuses.set(good, { pod: of('good'), status: { phase: 'Failed' }, version: 2, finished: false });
    t.client.calls.length = 0;
    await t.clock.advance(10_000);
    assert.deepEqual(
      t.client.calls.map((call) => call.target),
      ['/api/v1/namespaces/ns/pods/good/status'],
      'by the slow round',
    );
    t.statuses.set(good, { pod: of('good'), status: { phase: 'Succeeded' }, version: 3, finished: false });
    t.client.calls.length = 0;
    t.sync.apiPodsChanged([{ after: broken }, { after: of('good') }]);
    await t.clock.advance(0);
    assert.equal(t.client.calls.length, 1, 'by the watch');
    // A status that cannot be merged is tried again with back-off, and only that one.
    const odd = { conditions: 7 } as unknown as PodStatus;
    t.statuses.set(bad, { pod: of('bad'), status: odd, version: 2, finished: false });
    t.statuses.set(good, { pod: of('good'), status: { phase: 'Failed' }, version: 4, finished: false });
    t.client.calls.length = 0;
    t.sync.wake(bad);
    t.sync.wake(good);
    await t.clock.advance(50);
    assert.deepEqual(
      t.client.calls.map((call) => call.target),
      ['/api/v1/namespaces/ns/pods/good/status'],
    );
    t.statuses.delete(bad);
    await t.stop();
  });
});
