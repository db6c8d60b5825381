// What the runtime is asked for and what comes back, with word of resizes before and after.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { emptySnapshot, type MadePod, type PodSnapshot } from '../core/snapshot.ts';
import type { PodSyncRequest } from '../runtime/pod-runtime.ts';
import type { PodSyncResult } from '../runtime/sync-result.ts';
import { RuntimePort } from './runtime-port.ts';

const pod: Pod = { metadata: { uid: 'u', name: 'p', namespace: 'ns' }, spec: { containers: [] } };
const seen = { ...emptySnapshot(podUid('u'), 'p', 'ns'), ips: ['10.0.0.1'] };
const options = { onSandboxReady: () => undefined, onWaiting: () => undefined, restartingAll: true };
const sandbox = { id: 's' } as MadePod['sandbox'];

function setup(result: Partial<PodSyncResult>, fails?: Error) {
  const did: string[] = [];
  const requests: PodSyncRequest[] = [];
  const port = new RuntimePort({
    runtime: {
      syncPod: async (request) => {
        requests.push(request);
        did.push('sync');
        if (fails !== undefined) throw fails;
        return { acted: true, startErrors: new Map(), ...result } as PodSyncResult;
      },
      killPod: async ({ pod: killed, graceOverrideSeconds }) =>
        void did.push(`kill ${killed?.metadata.name ?? 'unknown'} ${graceOverrideSeconds ?? 'own'}`),
    },
    pullSecrets: async () => [{ metadata: { name: 'pull' } }],
    probes: { liveness: () => undefined, startup: () => undefined },
    resizes: {
      synced: (_pod, snapshot, error) => void did.push(`resize ${snapshot?.ips[0] ?? 'unseen'} ${error ?? ''}`),
    },
    observedSandbox: () => sandbox,
  });
  return { port, did, requests };
}

const made = { sandbox: {}, containers: [] } as unknown as NonNullable<PodSyncResult['made']>;
const rows: readonly [string, PodSnapshot | undefined, Partial<PodSyncResult>, readonly string[], unknown][] = [
  ['a pod that was seen', seen, {}, ['resize 10.0.0.1 ', 'sync', 'resize 10.0.0.1 '], undefined],
  ['a pod nobody saw yet', undefined, {}, ['resize unseen ', 'sync', 'resize unseen '], undefined],
  [
    'a resize that failed',
    seen,
    { resizeError: 'no room' } as Partial<PodSyncResult>,
    ['resize 10.0.0.1 ', 'sync', 'resize 10.0.0.1 no room'],
    undefined,
  ],
  [
    'what was made, as an observer would see it',
    seen,
    { made },
    ['resize 10.0.0.1 ', 'sync', 'resize 10.0.0.1 '],
    { sandbox, containers: [] },
  ],
];

describe('what a sync asks of the runtime', () => {
  const { signal } = new AbortController();
  for (const [name, snapshot, result, did, expected] of rows)
    it(name, async () => {
      const t = setup(result);
      const answer = await t.port.sync(pod, snapshot, options, signal);
      assert.deepEqual(t.did, did);
      assert.deepEqual(answer.made, expected);
      assert.ok(!('resizeError' in answer));
      const [request] = t.requests;
      assert.deepEqual(request?.snapshot, snapshot ?? emptySnapshot(podUid('u'), 'p', 'ns'));
      assert.deepEqual(request?.pullSecrets, [{ metadata: { name: 'pull' } }]);
      assert.equal(request?.restartingAll, true);
    });

  it('knows when the pod is to stop meanwhile', async () => {
    const t = setup({});
    const stop = new AbortController();
    await t.port.sync(pod, seen, options, stop.signal);
    const isTerminating = t.requests[0]?.isTerminating;
    assert.equal(isTerminating?.(), false);
    stop.abort();
    assert.equal(isTerminating?.(), true);
  });

  it('a failure says nothing about the resize', async () => {
    const t = setup({}, new Error('broken'));
    await assert.rejects(t.port.sync(pod, seen, options, signal), /broken/);
    assert.deepEqual(t.did, ['resize 10.0.0.1 ', 'sync']);
  });

  it('kills with the grace it is told, also what only the runtime knows', async () => {
    const t = setup({});
    await t.port.kill(pod, seen, { graceSeconds: 3 }, signal);
    await t.port.kill(undefined, seen, {}, signal);
    assert.deepEqual(t.did, ['kill p 3', 'kill unknown own']);
  });
});
