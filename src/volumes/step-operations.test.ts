// What the life of one volume is counted as.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import type { VolumeMode } from '../core/storage.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import type { VolumeRequest, VolumePlugin, VolumeToTearDown } from './plugin.ts';
import { PodVolumes } from './pod-volumes.ts';

/** One pod with one volume, whose every verb takes as long as it says. */
class Scene {
  readonly clock = new ManualClock();
  /** `operation plugin ok|failed seconds`. */
  readonly counted: string[] = [];
  volumeMode: VolumeMode = 'Filesystem';
  attached: Promise<string> = Promise.resolve('');
  resolved: () => Promise<void> = () => Promise.resolve();
  setUp: (request: VolumeRequest) => Promise<void> = () => Promise.resolve();
  tearDown: (volume: VolumeToTearDown) => Promise<void> = () => Promise.resolve();
  readonly #stop = new AbortController();
  readonly plugin: VolumePlugin = {
    name: 'test/disk',
    refreshes: true,
    setUp: async (request) => {
      await this.setUp(request);
      return { hostPath: '/v', readOnly: false, selinuxRelabel: false };
    },
    tearDown: (volume) => this.tearDown(volume),
    attachedName: () => 'test/v',
    metricName: () => 'test/disk:driver',
  };
  readonly volumes = new PodVolumes(
    'u',
    {
      resolver: {
        resolve: async () => {
          await this.resolved();
          return { plugin: this.plugin, specName: 'v', volumeMode: this.volumeMode, readOnly: false };
        },
        byName: () => Promise.resolve(this.plugin),
      },
      cleanSubPaths: () => Promise.resolve(),
      ensurePodDirs: () => Promise.resolve(),
      events: { pod: () => undefined, node: () => undefined },
      clock: this.clock,
      log: silentLogger,
      attachments: { whenAttached: () => this.attached, isUsable: () => true, isAttached: () => undefined },
      metrics: {
        observe: ({ operation, plugin, succeeded, overallSeconds }, seconds) => {
          const overall = overallSeconds === undefined ? '' : ` of ${overallSeconds}`;
          this.counted.push(`${operation} ${plugin} ${succeeded ? 'ok' : 'failed'} ${seconds}${overall}`);
        },
        forceCleaned: (succeeded) => void this.counted.push(`force cleaned ${succeeded ? 'ok' : 'failed'}`),
      },
    },
    { stepTimeoutMs: 100_000, onChange: () => undefined },
    this.#stop.signal,
  );

  async takes(seconds: number): Promise<void> {
    await this.clock.sleep(seconds * 1000, this.#stop.signal);
  }

  /** What was counted since it was asked last. */
  async after(seconds: number): Promise<string[]> {
    await this.clock.advance(seconds * 1000);
    return this.counted.splice(0);
  }
}

const pod: Pod = {
  metadata: { name: 'p' },
  spec: {
    volumes: [{ name: 'v', scripted: {} }],
    containers: [{ name: 'c', volumeMounts: [{ name: 'v', mountPath: '/v' }] }],
  },
};

for (const [volumeMode, mount, unmount, release] of [
  ['Filesystem', 'volume_mount', 'volume_unmount', 'unmount_device'],
  ['Block', 'map_volume', 'unmap_volume', 'unmap_device'],
] as const)
  test(`${volumeMode}: attached, mounted, unmounted and released, each with its own time`, async () => {
    const s = new Scene();
    s.volumeMode = volumeMode;
    s.resolved = () => s.takes(1);
    s.attached = s.takes(5).then(() => '/dev/x');
    s.setUp = () => s.takes(2);
    s.tearDown = async ({ releaseDevice }) => {
      await s.takes(3);
      await releaseDevice?.(() => s.takes(4));
    };
    s.volumes.setWanted(pod);
    assert.deepEqual(await s.after(8), [
      'verify_controller_attached_volume test/disk:driver ok 4',
      `${mount} test/disk:driver ok 2${volumeMode === 'Block' ? '' : ' of 7'}`,
    ]);
    s.volumes.markStale();
    s.volumes.reconcile();
    assert.deepEqual(
      await s.after(3),
      [`${mount} test/disk:driver ok 2${volumeMode === 'Block' ? '' : ' of 2'}`],
      'written again: it is attached already',
    );
    s.volumes.setUnwanted();
    assert.deepEqual(await s.after(8), [`${unmount} test/disk:driver ok 3`, `${release} test/disk:driver ok 4`]);
  });

test('another pod has the device still', async () => {
  const s = new Scene();
  s.volumes.setWanted(pod);
  await s.after(0);
  s.tearDown = () => s.takes(3);
  s.volumes.setUnwanted();
  assert.deepEqual(await s.after(4), ['volume_unmount test/disk:driver ok 3']);
});

test('a device that cannot be released at once: the pod was through with it before', async () => {
  const s = new Scene();
  s.volumes.setWanted(pod);
  await s.after(0);
  s.tearDown = async ({ releaseDevice }) => {
    await releaseDevice?.(() => s.takes(1).then(() => Promise.reject(new KubeletError('conflict', 'busy'))));
  };
  s.volumes.setUnwanted();
  assert.deepEqual(await s.after(1), [
    'volume_unmount test/disk:driver ok 0',
    'unmount_device test/disk:driver failed 1',
  ]);
  s.tearDown = async ({ releaseDevice }) => releaseDevice?.(() => s.takes(1));
  assert.deepEqual(await s.after(2), ['unmount_device test/disk:driver ok 1']);
});

test('what fails is counted as what failed', async () => {
  const s = new Scene();
  s.resolved = () => Promise.reject(new KubeletError('notFound', 'no claim'));
  s.volumes.setWanted(pod);
  assert.deepEqual(await s.after(0), [], 'nothing was begun');
  s.resolved = () => Promise.resolve();
  s.setUp = () => s.takes(1).then(() => Promise.reject(new KubeletError('internal', 'no')));
  assert.deepEqual(await s.after(1.5), [
    'verify_controller_attached_volume test/disk:driver ok 0',
    'volume_mount test/disk:driver failed 1',
  ]);
  s.setUp = () => Promise.resolve();
  assert.deepEqual(await s.after(1), ['volume_mount test/disk:driver ok 0 of 2.5'], 'attached it is');
  s.tearDown = () => Promise.reject(new KubeletError('conflict', 'busy'));
  s.volumes.setUnwanted();
  assert.deepEqual(await s.after(0), ['volume_unmount test/disk:driver failed 0']);
});

test('a mount that nobody wants any more is not counted', async () => {
  const s = new Scene();
  s.attached = new Promise(() => undefined);
  s.volumes.setWanted(pod);
  await s.after(1);
  s.volumes.setUnwanted();
  assert.deepEqual(await s.after(1), []);
});

test('files that are given to a group', async () => {
  const s = new Scene();
  s.setUp = async ({ ownershipChanged }) => {
    ownershipChanged?.(true, 0.5);
    return Promise.resolve();
  };
  s.volumes.setWanted(pod);
  assert.deepEqual((await s.after(0))[1], 'volume_apply_access_control test/disk:driver ok 0.5');
});

test('what an earlier run left and nobody understands is forced away, once', async () => {
  const s = new Scene();
  s.volumes.adopt({ plugin: s.plugin, specName: 'v', volumeMode: 'Filesystem', isBroken: true });
  s.tearDown = () => Promise.reject(new KubeletError('conflict', 'busy'));
  s.volumes.setUnwanted();
  assert.deepEqual(await s.after(0), ['force cleaned failed', 'volume_unmount test/disk failed 0']);
  s.tearDown = () => Promise.resolve();
  assert.deepEqual(await s.after(1), ['volume_unmount test/disk ok 0']);
});

test('volumes are counted by kind and driver, and as there only while they are mounted', async () => {
  const s = new Scene();
  s.volumes.adopt({ plugin: s.plugin, specName: 'v', volumeMode: 'Filesystem', metricName: 'test/disk:driver' });
  const totals = (): unknown => {
    const found = new Map<string, { desired: number; actual: number }>();
    s.volumes.count(found);
    return Object.fromEntries(found);
  };
  assert.deepEqual(totals(), { 'test/disk:driver': { desired: 0, actual: 0 } });
  s.volumes.setWanted(pod);
  await s.after(0);
  assert.deepEqual(totals(), { 'test/disk:driver': { desired: 1, actual: 1 } });
});
