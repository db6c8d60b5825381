import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFault } from '../lib/errors.ts';
import { LocalObjectStore } from './local-objects.ts';
import { StandaloneObjects } from './standalone-objects.ts';

test('objects are those of the manifests, all others are not found', async () => {
  const store = new LocalObjectStore();
  const objects = new StandaloneObjects(store);
  store.set(
    [{ metadata: { name: 'c', namespace: 'ns' }, data: { a: '1' } }],
    [{ metadata: { name: 's', namespace: 'ns' } }],
  );
  assert.deepEqual((await objects.configMap('ns', 'c')).data, { a: '1' });
  assert.equal((await objects.secret('ns', 's')).metadata.name, 's');
  assert.deepEqual(objects.services(), []);
  for (const [ask, message] of [
    [() => objects.configMap('other', 'c'), 'configmap "c" not found'],
    [() => objects.secret('ns', 'c'), 'secret "c" not found'],
    [() => objects.runtimeHandler('gvisor'), 'runtimeclass.node.k8s.io "gvisor" not found'],
  ] as const)
    await assert.rejects(ask, (err: Error) => isFault(err, 'notFound') && err.message === message);
});
