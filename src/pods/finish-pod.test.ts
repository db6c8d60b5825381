import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { FinishPod } from './finish-pod.ts';
import type { PodStatusWriter } from './pod-status-writer.ts';

const pod: Pod = { metadata: { name: 'p', uid: 'u' }, spec: { containers: [] } };

function setup() {
  const did: string[] = [];
  const finish = new FinishPod({
    observed: { get: () => undefined },
    status: {
      write: async () => void did.push('status'),
      forget: () => void did.push('forget status'),
    } as unknown as PodStatusWriter,
    cleanup: {
      unmountVolumes: async (uid) => void did.push(`unmount ${uid}`),
      unregisterObjects: () => void did.push('unregister'),
      destroyCgroup: async (uid) => void did.push(`cgroup ${uid}`),
      forgetRuntime: async (target) => void did.push(`runtime ${target.uid} ${target.pod?.metadata.name}`),
    },
    store: { finish: () => void did.push('finish') },
  });
  return { finish, did };
}
const signal = new AbortController().signal;

test('what a pod had is given back, also when its source no longer has it', async () => {
  const t = setup();
  await t.finish.finish({ uid: podUid('u'), pod }, signal);
  assert.deepEqual(t.did, ['status', 'unmount u', 'unregister', 'cgroup u', 'runtime u p', 'finish', 'forget status']);
});

test('of a pod that only the runtime knew as well', async () => {
  const t = setup();
  await t.finish.finish({ uid: podUid('u'), pod: undefined }, signal);
  assert.deepEqual(t.did, ['unmount u', 'cgroup u', 'runtime u undefined']);
});
