// What other parts may do with a pod, by the state of its worker and whether all pods are known.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { PodLifecycles } from './pod-lifecycles.ts';
import type { PodStopRequest, WorkerState } from './worker-state.ts';

const pod: Pod = { metadata: { uid: 'u', name: 'p' }, spec: { containers: [] } };
const SYNCING: WorkerState = { phase: 'syncing' };

function setup(state: WorkerState | undefined, synced: boolean, mounts = 0) {
  const did: string[] = [];
  const workers = {
    stateOf: () => state,
    stop: (_uid: string, request: PodStopRequest) =>
      void did.push(`stop ${request.graceSeconds ?? 'own'} ${request.evicted === true ? 'evicted' : 'ended'}`),
    stopped: async () => undefined,
  };
  const lifecycles = new PodLifecycles({
    workers: workers as never,
    synced: () => synced,
    volumes: { mountsOf: () => ({ size: mounts }) },
    events: { pod: (_pod, _type, reason) => void did.push(reason), node: () => undefined },
    clock: new ManualClock(),
  });
  return { lifecycles, did };
}

const rows: readonly [string, WorkerState | undefined, boolean, number, Record<string, boolean>][] = [
  [
    'a pod that runs',
    SYNCING,
    true,
    0,
    { contentRemovable: false, knownAndRemovable: false, runtimeRemovable: false, mayBeRunning: true, gone: false },
  ],
  [
    'nobody knows it, all are known',
    undefined,
    true,
    0,
    { contentRemovable: true, knownAndRemovable: false, runtimeRemovable: true, mayBeRunning: false, gone: true },
  ],
  [
    'the same with a volume mounted',
    undefined,
    true,
    1,
    { contentRemovable: true, knownAndRemovable: false, runtimeRemovable: true, mayBeRunning: false, gone: false },
  ],
  [
    'nobody knows it yet',
    undefined,
    false,
    0,
    { contentRemovable: false, knownAndRemovable: false, runtimeRemovable: false, mayBeRunning: true, gone: false },
  ],
];

describe('what others may do with a pod', () => {
  for (const [name, state, synced, mounts, expected] of rows)
    it(name, () => {
      const { lifecycles } = setup(state, synced, mounts);
      const uid = podUid('u');
      assert.deepEqual(
        {
          contentRemovable: lifecycles.contentRemovable(uid),
          knownAndRemovable: lifecycles.knownAndRemovable(uid),
          runtimeRemovable: lifecycles.runtimeRemovable(uid),
          mayBeRunning: lifecycles.mayBeRunning(uid),
          gone: lifecycles.gone(pod),
        },
        expected,
      );
    });

  it('ends it for a shutdown and for an eviction', async () => {
    const { lifecycles, did } = setup(SYNCING, true);
    const { signal } = new AbortController();
    await lifecycles.end(pod, 7, signal);
    await lifecycles.evict(pod, { reason: 'Evicted', message: 'why' }, signal);
    assert.deepEqual(did, ['stop 7 ended', 'Evicted', 'stop own evicted']);
  });
});
