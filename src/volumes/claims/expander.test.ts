import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolume, PersistentVolumeClaim } from '../../core/storage.ts';
import { KubeletError } from '../../lib/errors.ts';
import { silentLogger } from '../../lib/logger.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import type { MountedVolume, VolumePlugin, VolumeRequest } from '../plugin.ts';
import { Expander } from './expander.ts';

const claim: PersistentVolumeClaim = { metadata: { name: 'c' }, status: { capacity: { storage: '1Gi' } } };
const volume: PersistentVolume = { metadata: { name: 'pv' }, spec: { capacity: { storage: '2Gi' } } };
const mounted: MountedVolume = { hostPath: '/v', readOnly: false, selinuxRelabel: false };
const requestOf = (uid: string): VolumeRequest => ({
  pod: { metadata: { name: 'p', uid }, spec: { containers: [] } },
  volume: { name: 'v' },
  specName: 'pv',
  persistent: { volume, claim, mountOptions: [], migrated: false },
  volumeMode: 'Filesystem',
  readOnly: false,
  inUse: true,
  attachedPath: '',
  progress: () => undefined,
});

test('a volume that is not to be grown in use is left alone for its pod, and forgotten with it', async () => {
  let asked = 0;
  const plugin: VolumePlugin = {
    name: 'test',
    refreshes: false,
    setUp: () => Promise.resolve(mounted),
    tearDown: () => Promise.resolve(),
    expand: () => {
      asked++;
      return Promise.reject(new KubeletError('conflict', 'in use', { detail: { grpcCode: 'FailedPrecondition' } }));
    },
  };
  const expander = new Expander({
    patchClaim: (of) => Promise.resolve(of),
    events: { pod: () => undefined, claim: () => undefined },
    clock: new ManualClock(),
    log: silentLogger,
  });
  const { signal } = new AbortController();
  const expand = async (uid: string): Promise<number> => {
    asked = 0;
    const size = await expander.expand(requestOf(uid), plugin, mounted, { inUse: true, here: undefined }, signal);
    assert.equal(size, '1Gi');
    return asked;
  };
  assert.equal(await expand('a'), 1);
  assert.equal(await expand('a-longer-uid'), 1);
  assert.equal(await expand('a'), 0);
  expander.forget('a');
  assert.equal(await expand('a'), 1, 'nothing of the pod is kept');
  assert.equal(await expand('a-longer-uid'), 0, 'others are');
});

test('a volume that a pod wants read-only is not grown: told when it is mounted, not looked at under a running pod', async () => {
  const told: string[] = [];
  const plugin: VolumePlugin = {
    name: 'test',
    refreshes: false,
    setUp: () => Promise.resolve(mounted),
    tearDown: () => Promise.resolve(),
    expand: () => assert.fail('it is read-only'),
  };
  const expander = new Expander({
    patchClaim: () => assert.fail('nothing has changed'),
    events: {
      pod: (_pod, type, reason, message) => void told.push(`pod ${type} ${reason} ${message}`),
      claim: (_claim, type, reason) => void told.push(`claim ${type} ${reason}`),
    },
    clock: new ManualClock(),
    log: silentLogger,
  });
  const { signal } = new AbortController();
  const request = { ...requestOf('a'), readOnly: true };
  await expander.expand(request, plugin, mounted, { inUse: true, here: undefined }, signal);
  assert.deepEqual(told, []);
  await expander.expand(request, plugin, mounted, { inUse: false, here: undefined }, signal);
  assert.deepEqual(told, [
    'pod Warning FileSystemResizeFailed MountVolume.NodeExpandVolume failed for volume "pv" requested read-only file system',
    'claim Warning FileSystemResizeFailed',
  ]);
});

const stages: [string, Pick<VolumeRequest, 'volumeMode'>, boolean, string][] = [
  ['while it is mounted', { volumeMode: 'Filesystem' }, false, 'MountVolume.Setup failed while expanding volume'],
  ['while it is mapped', { volumeMode: 'Block' }, false, 'MapVolume.MarkVolumeAsMounted failed while expanding volume'],
  ['under a running pod', { volumeMode: 'Block' }, true, 'NodeExpandVolume.NodeExpandVolume failed'],
];
for (const [what, mode, inUse, stage] of stages)
  test(`an expansion that fails ${what} names its stage`, async () => {
    const plugin: VolumePlugin = {
      name: 'test',
      refreshes: false,
      setUp: () => Promise.resolve(mounted),
      tearDown: () => Promise.resolve(),
      expand: () => Promise.reject(new KubeletError('internal', 'no space')),
    };
    const expander = new Expander({
      patchClaim: (of) => Promise.resolve(of),
      events: { pod: () => undefined, claim: () => undefined },
      clock: new ManualClock(),
      log: silentLogger,
    });
    const { signal } = new AbortController();
    await assert.rejects(
      expander.expand({ ...requestOf('a'), ...mode }, plugin, mounted, { inUse, here: undefined }, signal),
      (err) => err instanceof KubeletError && err.message === 'no space' && err.detail['stage'] === stage,
    );
  });
