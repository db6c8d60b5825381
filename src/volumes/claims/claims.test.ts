import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../core/pod.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../core/storage.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { VolumePlugin } from '../plugin.ts';
import { claimOf } from './claim-checks.ts';
import { ClaimResolver } from './claim-resolver.ts';

const pod: Pod = {
  metadata: { name: 'p', namespace: 'ns', uid: 'pod-uid' },
  spec: {
    volumes: [
      { name: 'data', persistentVolumeClaim: { claimName: 'c', readOnly: true } },
      { name: 'own', ephemeral: {} },
      { name: 'raw', persistentVolumeClaim: { claimName: 'c', readOnly: true } },
    ],
    containers: [
      {
        name: 'c',
        volumeMounts: [
          { name: 'data', mountPath: '/d' },
          { name: 'own', mountPath: '/o' },
        ],
        volumeDevices: [{ name: 'raw', devicePath: '/dev/x' }],
      },
    ],
  },
};

const claim = (change: Partial<PersistentVolumeClaim> = {}, metadata = {}): PersistentVolumeClaim => ({
  metadata: { name: 'c', uid: 'claim-uid', ...metadata },
  spec: { volumeName: 'pv' },
  status: { phase: 'Bound' },
  ...change,
});
const volume = (spec: PersistentVolume['spec'] = {}): PersistentVolume => ({
  metadata: { name: 'pv' },
  spec: { claimRef: { uid: 'claim-uid' }, volumeMode: 'Filesystem', csi: { driver: 'd', volumeHandle: 'h' }, ...spec },
});
const missing = (what: string): Promise<never> => Promise.reject(new KubeletError('notFound', `${what} not found`));
const plugin: VolumePlugin = {
  name: 'kubernetes.io/csi',
  refreshes: false,
  setUp: () => Promise.resolve({ hostPath: '', readOnly: false, selinuxRelabel: false }),
  tearDown: () => Promise.resolve(),
};

type Objects = { claim?: PersistentVolumeClaim; volume?: PersistentVolume };
async function resolve(name: string, objects: Objects): Promise<unknown> {
  const resolver = new ClaimResolver({
    objects: {
      claim: (_ns, wanted) =>
        objects.claim === undefined ? missing(`persistentvolumeclaims "${wanted}"`) : Promise.resolve(objects.claim),
      volume: (wanted) =>
        objects.volume === undefined ? missing(`persistentvolumes "${wanted}"`) : Promise.resolve(objects.volume),
    },
    pluginOf: (source) => (source === 'csi' ? plugin : undefined),
  });
  const wanted = pod.spec.volumes?.find((v) => v.name === name);
  assert.ok(wanted);
  const use = claimOf(pod, wanted);
  assert.ok(use);
  try {
    return await resolver.resolve(pod, wanted, use, new AbortController().signal);
  } catch (err) {
    return (err as Error).message;
  }
}

const IN = 'error processing PVC ns/c:';
const owned = { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'pod-uid', controller: true }] };
const other = { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'another', controller: true }] };

const refused: [string, string, Objects, string][] = [
  ['no claim', 'data', {}, `${IN} failed to fetch PVC from API server: persistentvolumeclaims "c" not found`],
  [
    'being deleted',
    'data',
    { claim: claim({}, { deletionTimestamp: 'x', finalizers: ['other'] }) },
    `${IN} PVC is being deleted`,
  ],
  ['not bound', 'data', { claim: claim({ status: { phase: 'Pending' } }) }, `${IN} PVC is not bound`],
  ['no volume name', 'data', { claim: claim({ spec: {} }) }, `${IN} PVC has empty pvc.Spec.VolumeName`],
  [
    'no volume',
    'data',
    { claim: claim() },
    `${IN} failed to fetch PV pv from API server: persistentvolumes "pv" not found`,
  ],
  [
    'no claimRef',
    'data',
    { claim: claim(), volume: { metadata: { name: 'pv' }, spec: { volumeMode: 'Filesystem' } } },
    `${IN} found PV object pv but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`,
  ],
  [
    'another claim',
    'data',
    { claim: claim(), volume: volume({ claimRef: { uid: 'x' } }) },
    `${IN} found PV object pv but its pv.Spec.ClaimRef.UID x does not point to claim.UID claim-uid`,
  ],
  [
    'ephemeral of another pod',
    'own',
    { claim: claim({}, other), volume: volume() },
    'PVC ns/p-own was not created for pod ns/p (pod is not owner)',
  ],
  [
    'block as a filesystem',
    'data',
    { claim: claim(), volume: volume({ volumeMode: 'Block' }) },
    'volume data has volumeMode Block, but is specified in volumeMounts',
  ],
  [
    'filesystem as a device',
    'raw',
    { claim: claim(), volume: volume() },
    'volume raw has volumeMode Filesystem, but is specified in volumeDevices',
  ],
  [
    'no plugin',
    'data',
    {
      claim: claim(),
      volume: { metadata: { name: 'pv' }, spec: { ...volume().spec, csi: undefined, odd: {} } } as never,
    },
    'failed to get Plugin from volumeSpec for volume "pv" err=no volume plugin matched',
  ],
];
for (const [name, which, objects, expected] of refused)
  test(`a claim is refused: ${name}`, async () => assert.equal(await resolve(which, objects), expected));

test('a claim that is bound resolves to its volume', async () => {
  const bound = claim({}, { deletionTimestamp: 'x', finalizers: ['kubernetes.io/pvc-protection'] });
  const found = volume({ mountOptions: ['noatime'] });
  assert.deepEqual(await resolve('data', { claim: bound, volume: found }), {
    plugin,
    specName: 'pv',
    volumeMode: 'Filesystem',
    readOnly: true,
    persistent: { volume: found, claim: bound, mountOptions: ['noatime'], migrated: false },
  });
  assert.equal(typeof (await resolve('own', { claim: claim({}, owned), volume: volume() })), 'object');
  assert.equal(typeof (await resolve('raw', { claim: claim(), volume: volume({ volumeMode: 'Block' }) })), 'object');
});
