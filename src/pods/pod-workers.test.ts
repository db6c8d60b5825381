import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid, type PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { PodWorkers, type WorkerSteps } from './pod-workers.ts';

const makePod = (uid: string, extra: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'n', uid, ...extra },
  spec: { containers: [{ name: 'c' }], terminationGracePeriodSeconds: 30 },
});

const OVER = { terminal: true };

type Call = [string, string, unknown?];

function setup(steps: Partial<WorkerSteps> = {}) {
  const clock = new ManualClock();
  const pods = new Map<PodUid, Pod>();
  const calls: Call[] = [];
  const alive = new Set<PodUid>();
  const workers = new PodWorkers(
    {
      steps: {
        sync: async (pod, signal) => {
          calls.push(['sync', pod.metadata.uid ?? '']);
          return (await steps.sync?.(pod, signal)) ?? { terminal: false };
        },
        dueAt: (pod) => steps.dueAt?.(pod),
        terminate: async (target, state, signal) => {
          calls.push(['terminate', target.uid, state.graceSeconds]);
          await steps.terminate?.(target, state, signal);
        },
        finish: async (target, signal) => {
          calls.push(['finish', target.uid]);
          await steps.finish?.(target, signal);
        },
      },
      desired: { get: (uid) => pods.get(uid) },
      isAlive: (uid) => alive.has(uid),
      onTerminated: () => undefined,
      onFinished: (uid) => calls.push(['finished', uid]),
      onRestarted: (pod) => calls.push(['restarted', pod.metadata.uid ?? '']),
      onForgotten: (uid) => calls.push(['forgotten', uid]),
      clock,
      log: silentLogger,
    },
    { syncFrequencyMs: 60_000 },
  );
  const stop = new AbortController();
  const running = workers.run(stop.signal);
  const add = (pod: Pod): void => {
    pods.set(podUid(pod.metadata.uid ?? ''), pod);
    workers.ensure(pod);
  };
  const end = async (): Promise<void> => {
    stop.abort();
    await running;
  };
  return { clock, pods, calls, alive, workers, add, end };
}

describe('pod workers', () => {
  it('say what they are at, for people', async () => {
    let failing = true;
    const sync = async (_pod: Pod, signal: AbortSignal): Promise<{ terminal: boolean }> => {
      if (failing) throw new Error('no cgroup');
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return { terminal: false };
    };
    const t = setup({ sync });
    const view = () => t.workers.view(podUid('a'));
    t.add(makePod('a'));
    await t.clock.advance(0);
    const now = t.clock.now();
    assert.deepEqual(view()?.lastError, { message: 'no cgroup', atMs: now, attempts: 1 });
    assert.ok((view()?.nextRunMs ?? 0) >= now + 10_000);
    await t.clock.advance(15_000);
    assert.equal(view()?.lastError?.attempts, 2);
    failing = false;
    await t.clock.advance(15_000);
    assert.equal(view()?.nextRunMs, undefined);
    assert.equal(typeof view()?.busySinceMs, 'number');
    t.workers.stop(podUid('a'), { graceSeconds: 7 });
    const { phase, graceSeconds, sinceMs } = view() ?? {};
    assert.deepEqual([phase, graceSeconds, sinceMs], ['terminating', 7, t.clock.now()]);
    assert.equal(t.workers.view(podUid('b')), undefined);
    await t.end();
  });

  it('do not start a pod that was deleted and removed before they looked at it', async () => {
    const t = setup();
    t.workers.ensure(makePod('a', { deletionTimestamp: '2026-01-01T00:00:00Z' }));
    await t.clock.advance(60_000);
    assert.deepEqual(
      t.calls.map(([what]) => what),
      ['terminate', 'finish', 'finished'],
    );
    await t.end();
  });

  it('syncs at once, again after the sync period, and not in between', async () => {
    const t = setup();
    t.add(makePod('a'));
    await t.clock.advance(59_000);
    assert.deepEqual(t.calls, [['sync', 'a']]);
    await t.clock.advance(31_000);
    assert.equal(t.calls.length, 2);
    await t.end();
  });

  it('looks at a pod whose syncs fail when its time is up', async () => {
    let dueAt = 0;
    const t = setup({
      sync: () => (t.clock.monotonic() < dueAt ? Promise.reject(new Error('no image')) : Promise.resolve(OVER)),
      dueAt: () => dueAt,
    });
    dueAt = t.clock.monotonic() + 3000;
    t.add(makePod('a'));
    await t.clock.advance(2999);
    assert.deepEqual(t.calls, [['sync', 'a']]);
    await t.clock.advance(1);
    assert.deepEqual(t.calls.slice(1, 3), [
      ['sync', 'a'],
      ['terminate', 'a', 30],
    ]);
    await t.end();
  });

  it('is not kept busy by a pod whose time was up before its syncs failed', async () => {
    const t = setup({ sync: () => Promise.reject(new Error('no runtime')), dueAt: () => 0 });
    t.add(makePod('a'));
    await t.clock.advance(9999);
    assert.deepEqual(t.calls, [['sync', 'a']]);
    await t.end();
  });

  it('retries a failed step and keeps the others going', async () => {
    const t = setup({
      sync: async (pod) => {
        if (pod.metadata.uid === 'bad') throw new Error('no');
        return { terminal: false };
      },
    });
    t.add(makePod('bad'));
    t.add(makePod('good', { name: 'q' }));
    await t.clock.advance(16_000);
    assert.equal(t.calls.filter(([, uid]) => uid === 'bad').length, 2);
    assert.equal(t.calls.filter(([, uid]) => uid === 'good').length, 1);
    await t.end();
  });

  it('wakes exactly when a back-off ends', async () => {
    let first = true;
    const t = setup({
      sync: async () => {
        const outcome = first ? { terminal: false, retryAt: 5000 } : { terminal: false };
        first = false;
        return outcome;
      },
    });
    t.add(makePod('a'));
    await t.clock.advance(4999);
    assert.equal(t.calls.length, 1);
    await t.clock.advance(1);
    assert.equal(t.calls.length, 2);
    await t.end();
  });

  it('stops a deleted pod with its deletion grace and cleans up', async () => {
    const t = setup();
    t.add(makePod('a'));
    await t.clock.advance(0);
    t.add(makePod('a', { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 7 }));
    await t.clock.advance(1);
    assert.deepEqual(t.calls.slice(1), [
      ['terminate', 'a', 7],
      ['finish', 'a'],
      ['finished', 'a'],
    ]);
    await t.end();
  });

  it('aborts a sync under way when the pod is stopped, and a kill when its grace shrinks', async () => {
    const aborted: string[] = [];
    const hang = (name: string, signal: AbortSignal): Promise<never> =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () => {
          aborted.push(name);
          reject(new Error('aborted'));
        }),
      );
    let kills = 0;
    const t = setup({
      sync: (_pod, signal) => hang('sync', signal),
      terminate: async (_t, _s, signal) => {
        if (kills++ === 0) await hang('terminate', signal);
      },
    });
    t.add(makePod('a'));
    await t.clock.advance(0);
    t.workers.stop(podUid('a'), { graceSeconds: 20 });
    await t.clock.advance(1);
    t.workers.stop(podUid('a'), { graceSeconds: 3 });
    await t.clock.advance(1);
    assert.deepEqual(aborted, ['sync', 'terminate']);
    assert.deepEqual(
      t.calls.filter(([what]) => what === 'terminate').map(([, , grace]) => grace),
      [20, 3],
    );
    await t.end();
  });

  it('does not let a deletion wait for the sync under way, nor a shorter one for the kill', async () => {
    const aborted: string[] = [];
    const hang = (what: string, signal: AbortSignal): Promise<never> =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => {
          aborted.push(what);
          reject(signal.reason as Error);
        }),
      );
    const t = setup({
      sync: (_pod, signal) => hang('sync', signal),
      terminate: (_target, state, signal) => (state.graceSeconds > 1 ? hang('kill', signal) : Promise.resolve()),
    });
    t.add(makePod('a'));
    await t.clock.advance(0);
    t.add(makePod('a', { labels: { other: 'change' } }));
    await t.clock.advance(0);
    assert.deepEqual(aborted, [], 'other changes wait');
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    t.add(makePod('a', { deletionTimestamp, deletionGracePeriodSeconds: 7 }));
    await t.clock.advance(1);
    assert.deepEqual(aborted, ['sync']);
    t.add(makePod('a', { deletionTimestamp, deletionGracePeriodSeconds: 1 }));
    await t.clock.advance(1);
    assert.deepEqual(aborted, ['sync', 'kill']);
    assert.deepEqual(t.calls, [
      ['sync', 'a'],
      ['terminate', 'a', 7],
      ['terminate', 'a', 1],
      ['finish', 'a'],
      ['finished', 'a'],
    ]);
    await t.end();
  });

  it('finishes a pod that was over before this agent started without touching the runtime', async () => {
    const t = setup();
    t.add({ ...makePod('a'), status: { phase: 'Succeeded' } });
    t.workers.forget(podUid('a'));
    await t.clock.advance(1);
    const finished = [
      ['finish', 'a'],
      ['finished', 'a'],
    ];
    assert.deepEqual(t.calls, finished, 'a worker that is not finished is kept');
    t.workers.forget(podUid('a'));
    t.workers.forget(podUid('a'));
    assert.deepEqual(t.calls, [...finished, ['forgotten', 'a']]);
    await t.end();
  });

  it('stop what runs of a refused pod as the runtime has it, and leave the pod to its end', async () => {
    const t = setup();
    t.pods.set(podUid('a'), makePod('a'));
    t.workers.stopRefused(podUid('a'));
    t.workers.stopRefused(podUid('a'));
    t.workers.wake(podUid('a'));
    assert.equal(t.workers.podOf(podUid('a')), undefined);
    await t.clock.advance(1);
    const ended = [
      ['terminate', 'a', 1],
      ['finish', 'a'],
      ['forgotten', 'a'],
      ['finished', 'a'],
    ];
    assert.deepEqual(t.calls, ended);
    assert.equal(t.workers.stateOf(podUid('a')), undefined);
    await t.end();
  });

  it('finish a refused pod that was deleted while what ran of it was stopped', async () => {
    const stopped = Promise.withResolvers<void>();
    const t = setup({ terminate: () => stopped.promise });
    t.pods.set(podUid('a'), makePod('a'));
    t.workers.stopRefused(podUid('a'));
    await t.clock.advance(1);
    t.add(makePod('a', { deletionTimestamp: '2026-01-01T00:00:00Z' }));
    stopped.resolve();
    await t.clock.advance(1);
    assert.deepEqual(t.calls.map(([what]) => what).slice(3), ['finished', 'terminate', 'finish', 'finished']);
    assert.equal(t.workers.podOf(podUid('a'))?.metadata.uid, 'a');
    await t.end();
  });

  it('start a refused pod over that its source removed and added again', async () => {
    const stopped = Promise.withResolvers<void>();
    const t = setup({ terminate: () => stopped.promise });
    const pod = makePod('a');
    t.pods.set(podUid('a'), pod);
    t.workers.stopRefused(podUid('a'));
    await t.clock.advance(1);
    t.workers.add(pod);
    stopped.resolve();
    await t.clock.advance(1);
    assert.deepEqual(t.calls.slice(2), [
      ['restarted', 'a'],
      ['sync', 'a'],
    ]);
    await t.end();
  });

  it('lets static pods of the same name wait for each other', async () => {
    const t = setup();
    const annotations = { 'kubernetes.io/config.source': 'file' };
    t.add(makePod('old', { annotations }));
    await t.clock.advance(0);
    t.add(makePod('new', { annotations }));
    await t.clock.advance(1);
    assert.deepEqual(t.calls, [['sync', 'old']]);
    t.pods.delete(podUid('old'));
    t.workers.stop(podUid('old'), { deleted: true });
    await t.clock.advance(1);
    assert.deepEqual(t.calls.slice(1), [
      ['terminate', 'old', 30],
      ['finish', 'old'],
      ['finished', 'old'],
      ['sync', 'new'],
    ]);
    await t.end();
  });

  it('starts over under the same UID only after the old life is finished and forgotten', async () => {
    const t = setup();
    t.add(makePod('a'));
    await t.clock.advance(0);
    t.workers.stop(podUid('a'), { deleted: true });
    t.workers.add(makePod('a'));
    await t.clock.advance(1);
    assert.deepEqual(t.calls, [
      ['sync', 'a'],
      ['terminate', 'a', 30],
      ['finish', 'a'],
      ['restarted', 'a'],
      ['sync', 'a'],
    ]);
    await t.end();
  });

  it('does not start an evicted pod over because somebody changes it', async () => {
    const t = setup();
    t.add(makePod('a'));
    await t.clock.advance(0);
    t.workers.stop(podUid('a'), { evicted: true });
    t.add(makePod('a', { labels: { other: 'change' } }));
    await t.clock.advance(60_000);
    assert.equal(t.workers.stateOf(podUid('a'))?.phase, 'finished');
    assert.deepEqual(t.calls.at(-1), ['finished', 'a']);
    await t.end();
  });

  it('survives a pod whose record cannot be read, and tries again', async () => {
    const t = setup();
    t.add(makePod('bad'));
    t.add(makePod('good', { name: 'q' }));
    const { get } = t.pods;
    t.pods.get = (uid) => {
      if (uid === 'bad') throw new TypeError("Cannot read properties of null (reading 'requests')");
      return get.call(t.pods, uid);
    };
    await t.clock.advance(1);
    assert.deepEqual(t.calls, [['sync', 'good']]);
    t.pods.get = get;
    await t.clock.advance(16_000);
    assert.deepEqual(t.calls.at(-1), ['sync', 'bad']);
    await t.end();
  });

  it('knows until when a static pod of a name may run', async () => {
    const t = setup();
    const annotations = { 'kubernetes.io/config.source': 'file' };
    t.add(makePod('a', { annotations }));
    await t.clock.advance(0);
    assert.equal(t.workers.mayRunStatic('p_n'), true);
    assert.equal(t.workers.mayRunStatic('other_n'), false);
    t.pods.delete(podUid('a'));
    t.workers.stop(podUid('a'), { deleted: true });
    assert.equal(t.workers.mayRunStatic('p_n'), true, 'while it is being stopped');
    await t.clock.advance(1);
    assert.equal(t.workers.mayRunStatic('p_n'), false);
    await t.end();
  });

  it('leaves no timer behind when it stops', async () => {
    const t = setup();
    for (let i = 0; i < 20; i++) t.add(makePod(`p${i}`, { name: `p${i}` }));
    await t.clock.advance(10);
    await t.end();
    assert.equal(t.clock.pending, 0);
  });
});
