import assert from 'node:assert/strict';
import { it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Pod, PodStatus } from '../core/pod.ts';
import { aliveSnapshot } from '../core/snapshot.fixture.ts';
import { emptySnapshot } from '../core/snapshot.ts';
import type { KillOptions } from './sync-pod.ts';
import { TerminatePod, type TerminatePodDeps } from './terminate-pod.ts';

const pod: Pod = { metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { containers: [] } };
const { signal } = new AbortController();
const stops: TerminatePodDeps['stops'] = { run: (_, __, stop) => stop() };

it('claims are unprepared when nothing runs any more, and before the final status', async () => {
  const done: string[] = [];
  let fails = true;
  const deps = {
    observed: {
      get: () => undefined,
      refresh: async () => emptySnapshot(podUid('u'), 'p', 'n'),
      beginMutation: () => () => undefined,
      isOutdated: () => false,
    },
    status: {
      write: async (_: Pod, __: unknown, options?: { terminal?: boolean }) =>
        void done.push(options?.terminal === true ? 'final status' : 'status'),
    },
    probes: { stopLivenessAndStartup: () => undefined, removePod: () => void done.push('stopped') },
    runtime: { kill: async () => undefined },
    unprepareClaims: async () => {
      done.push('unprepare');
      if (fails) throw new Error('driver is away');
    },
    stops,
    events: { pod: () => undefined, node: () => undefined },
  } as unknown as TerminatePodDeps;
  const terminate = new TerminatePod(deps);
  const state = { phase: 'terminating', since: 0, graceSeconds: 1, evicted: false } as unknown as Parameters<
    TerminatePod['terminate']
  >[1];
  await assert.rejects(terminate.terminate({ uid: podUid('u'), pod }, state, signal), /driver is away/);
  assert.deepEqual(done, ['status', 'stopped', 'unprepare']);
  fails = false;
  done.length = 0;
  await terminate.terminate({ uid: podUid('u'), pod }, state, signal);
  assert.deepEqual(done, ['status', 'stopped', 'unprepare', 'final status']);
});

it('a pod that is as last seen is stopped without reading it first; one that is not is read', async () => {
  for (const outdated of [false, true]) {
    const done: string[] = [];
    const deps = {
      observed: {
        get: () => aliveSnapshot('u'),
        refresh: async (_: unknown, __: unknown, what = 'all') => {
          done.push(`read ${what}`);
          return what === 'all' ? aliveSnapshot('u') : emptySnapshot(podUid('u'), 'p', 'n');
        },
        beginMutation: () => (unseen: boolean) => void done.push(unseen ? 'not seen' : 'seen'),
        isOutdated: () => outdated,
      },
      status: { write: async () => undefined },
      probes: { stopLivenessAndStartup: () => undefined, removePod: () => undefined },
      runtime: { kill: async () => void done.push('kill') },
      stops,
      events: { pod: () => undefined, node: () => undefined },
    } as unknown as TerminatePodDeps;
    const state = { phase: 'terminating', since: 0, graceSeconds: 1 } as unknown as Parameters<
      TerminatePod['terminate']
    >[1];
    await new TerminatePod(deps).terminate({ uid: podUid('u'), pod }, state, signal);
    assert.deepEqual(done, [...(outdated ? ['read all'] : []), 'kill', 'read stopped', 'seen']);
  }
});

it('ends are read as soon as no container can be running', async () => {
  const done: string[] = [];
  const deps = {
    observed: {
      get: () => aliveSnapshot('u'),
      refresh: async (_: unknown, __: unknown, what: string) => {
        done.push(`read ${what}`);
        return emptySnapshot(podUid('u'), 'p', 'n');
      },
      beginMutation: () => () => undefined,
      isOutdated: () => false,
    },
    status: { write: async () => undefined },
    probes: { stopLivenessAndStartup: () => undefined, removePod: () => undefined },
    runtime: {
      kill: async (_: Pod, __: unknown, { graceSeconds, onContainersStopped }: KillOptions) => {
        done.push(`containers stop within ${graceSeconds} s`);
        onContainersStopped?.();
        await Promise.resolve();
        done.push('sandbox stopped');
      },
    },
    stops,
    events: { pod: () => undefined, node: () => undefined },
  } as unknown as TerminatePodDeps;
  const state = { phase: 'terminating', since: 0, graceSeconds: 7 } as unknown as Parameters<
    TerminatePod['terminate']
  >[1];
  await new TerminatePod(deps).terminate({ uid: podUid('u'), pod }, state, signal);
  assert.deepEqual(done, ['containers stop within 7 s', 'read containersStopped', 'sandbox stopped', 'read stopped']);
});

it('a stop that is called off while the pod is read leaves nothing behind', async () => {
  const done: string[] = [];
  const deps = {
    observed: {
      get: () => aliveSnapshot('u'),
      refresh: () => Promise.reject(new Error('called off')),
      beginMutation: () => (unseen: boolean) => void done.push(unseen ? 'not seen' : 'seen'),
      isOutdated: () => true,
    },
    status: { write: async () => void done.push('status') },
    probes: { stopLivenessAndStartup: () => undefined, removePod: () => undefined },
    runtime: { kill: async () => void done.push('kill') },
    stops,
    events: { pod: () => undefined, node: () => undefined },
  } as unknown as TerminatePodDeps;
  const state = { phase: 'terminating', since: 0, graceSeconds: 1 } as unknown as Parameters<
    TerminatePod['terminate']
  >[1];
  const terminate = new TerminatePod(deps);
  await assert.rejects(terminate.terminate({ uid: podUid('u'), pod }, state, AbortSignal.abort()));
  terminate.probed(podUid('u'));
  await Promise.resolve();
  assert.deepEqual(done, ['status', 'not seen'], 'nobody tells of it any more');
});

it('tells what probes find while the pod waits for its turn, and reads it when that has come', async () => {
  const done: string[] = [];
  const turn = Promise.withResolvers<void>();
  const deps = {
    observed: {
      get: () => aliveSnapshot('u'),
      refresh: async () => emptySnapshot(podUid('u'), 'p', 'n'),
      beginMutation: () => {
        done.push('begins');
        return () => undefined;
      },
      isOutdated: () => false,
    },
    status: { write: async () => void done.push('status') },
    probes: { stopLivenessAndStartup: () => undefined, removePod: () => undefined },
    runtime: { kill: async () => void done.push('kill') },
    stops: {
      run: async (graceSeconds: number, _: AbortSignal, stop: () => Promise<unknown>) => {
        done.push(`waits with ${graceSeconds} s`);
        await turn.promise;
        return stop();
      },
    },
    events: { pod: () => undefined, node: () => undefined },
  } as unknown as TerminatePodDeps;
  const state = { phase: 'terminating', since: 0, graceSeconds: 7 } as unknown as Parameters<
    TerminatePod['terminate']
  >[1];
  const terminate = new TerminatePod(deps);
  const terminated = terminate.terminate({ uid: podUid('u'), pod }, state, signal);
  await new Promise(setImmediate);
  terminate.probed(podUid('u'));
  await new Promise(setImmediate);
  assert.deepEqual(done, ['status', 'waits with 7 s', 'status']);
  turn.resolve();
  await terminated;
  assert.deepEqual(done.slice(3), ['begins', 'kill', 'status']);
});

it('why a pod is stopped is told when that begins; how it ended its containers tell', async () => {
  const told: unknown[] = [];
  const why = (status: PodStatus): PodStatus => ({ ...status, phase: 'Failed', reason: 'Evicted' });
  const deps = {
    observed: {
      get: () => undefined,
      refresh: async () => emptySnapshot(podUid('u'), 'p', 'n'),
      beginMutation: () => () => undefined,
      isOutdated: () => false,
    },
    status: { write: async (_: Pod, __: unknown, options: unknown) => void told.push(options) },
    probes: { stopLivenessAndStartup: () => undefined, removePod: () => undefined },
    runtime: { kill: async () => undefined },
    stops,
    events: { pod: () => undefined, node: () => undefined },
  } as unknown as TerminatePodDeps;
  const state = { phase: 'terminating', since: 0, graceSeconds: 1, status: why } as unknown as Parameters<
    TerminatePod['terminate']
  >[1];
  await new TerminatePod(deps).terminate({ uid: podUid('u'), pod }, state, signal);
  assert.deepEqual(told, [{ adjust: why }, { terminal: true }]);
});
