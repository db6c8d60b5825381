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
      volumesUnwanted: (uid) => void did.push(`unwanted ${uid}`),
      waitUnmounted: async (uid) => void did.push(`unmounted ${uid}`),
      unregisterObjects: () => void did.push('unregister'),
      destroyCgroup: async (of) => void did.push(`cgroup ${typeof of === 'string' ? of : of.metadata.uid}`),
      forgetImages: (uid) => void did.push(`images ${uid}`),
      forgetRuntime: async (uid, of) => void did.push(`runtime ${uid} ${of?.metadata.name}`),
    },
    store: { finish: () => void did.push('finish') },
  });
  return { finish, did };
}
const signal = new AbortController().signal;

test('what a pod had is given back, also when its source no longer has it', async () => {
  const t = setup();
  await t.finish.finish({ uid: podUid('u'), pod }, signal);
  assert.deepEqual(t.did, [
    'status',
    'unwanted u',
    'unmounted u',
    'unregister',
    'cgroup u',
    'images u',
    'runtime u p',
    'finish',
    'forget status',
  ]);
});

test('of a pod that only the runtime knew as well', async () => {
  const t = setup();
  await t.finish.finish({ uid: podUid('u'), pod: undefined }, signal);
  assert.deepEqual(t.did, ['unwanted u', 'unmounted u', 'cgroup u', 'images u', 'runtime u undefined']);
});
