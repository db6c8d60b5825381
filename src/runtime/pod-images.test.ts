import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { ContainerStartError } from '../core/reasons.ts';
import { KubeletError } from '../lib/errors.ts';
import { PodImages } from './pod-images.ts';

const pod: Pod = {
  metadata: { name: 'p' },
  spec: { containers: [], volumes: [{ name: 'data', image: { reference: 'data:v1' } }] },
};
const setting = { config: {}, runtimeHandler: '', userns: undefined };

test('an image volume of a pod that is called off has not failed', async () => {
  const stop = new AbortController();
  const ensure = (): Promise<never> => {
    stop.abort(new KubeletError('cancelled', 'the pod is being stopped'));
    return Promise.reject(new KubeletError('cancelled', 'called off'));
  };
  const images = new PodImages({ ensure }, { pod, pullSecrets: [] });
  await assert.rejects(images.volumes(setting, stop.signal), { kind: 'cancelled' });
});

test('an image volume that cannot be looked at is the trouble of those who mount it', async () => {
  const images = new PodImages({ ensure: () => Promise.reject(new Error('broken')) }, { pod, pullSecrets: [] });
  const found = (await images.volumes(setting, new AbortController().signal)).get('data');
  assert.ok(found instanceof ContainerStartError);
  assert.deepEqual([found.reason, found.message], ['ImageInspectError', 'broken']);
});
