import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod, Toleration } from '../core/pod.ts';
import { canonicalJson, isUsableUid, makeStatic } from './static-identity.ts';

test('JSON with sorted keys, without what is not there', () => {
  assert.equal(canonicalJson({ b: [1, null], a: { d: undefined, c: 'x' } }), '{"a":{"c":"x"},"b":[1,null]}');
  assert.equal(canonicalJson([undefined]), '[null]');
});

test('UIDs become file names', () => {
  for (const uid of ['a', 'a-b_c', 'A'.repeat(63)]) assert.ok(isUsableUid(uid), uid);
  for (const uid of ['', '-a', 'a/b', '..', 'A'.repeat(64)]) assert.ok(!isUsableUid(uid), uid);
});

const tolerations = (given: readonly Toleration[] | undefined, local = true): readonly Toleration[] | undefined => {
  const spec = { containers: [], ...(given === undefined ? {} : { tolerations: given }) };
  const pod: Pod = { metadata: { name: 'p' }, spec };
  return makeStatic(pod, pod, { local, where: '/m' }, 'Node').spec.tolerations;
};
const ALL = { operator: 'Exists', effect: 'NoExecute' } as const;

test('a pod from a file tolerates what would end it; what it says already is not said twice', () => {
  assert.deepEqual(tolerations(undefined), [ALL]);
  const other = { key: 'k', operator: 'Exists', effect: 'NoExecute' } as const;
  assert.deepEqual(tolerations([other]), [other, ALL]);
  assert.deepEqual(tolerations([{ key: '', ...ALL }, other]), [ALL, other]);
  assert.equal(tolerations(undefined, false), undefined);
});

test('name, namespace and UID are the node’s unless given', () => {
  const pod: Pod = { metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { containers: [] } };
  const { metadata } = makeStatic(pod, pod, { local: false, where: 'http://x' }, 'Node');
  assert.deepEqual([metadata.name, metadata.namespace, metadata.uid], ['p-node', 'n', 'u']);
});
