// The recorded storage scenarios that need devices, on this kernel: same calls in the same order, same files, links, mounts
// and loop devices as with the Go kubelet.
// runs: gate
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { Pod, Volume } from '../../src/core/pod.ts';
import { CsiScene, podWith } from '../fakes/csi-scene.ts';
import type { DriverCall } from '../fakes/scripted-csi-driver.ts';
import { assertSameFiles, RECORDED_ROOT } from '../golden/csi-files.ts';
import { mountsBeneath } from './volumes-setup.ts';

const ATTRIBUTES = { 'storage.kubernetes.io/csiProvisionerIdentity': '1794778838418-6353-hostpath.csi.k8s.io' };
const noLoops = existsSync('/dev/loop-control') ? false : 'this machine has no loop devices';
const ALL = /./;

let s: CsiScene;
let disks: string[];
beforeEach(async () => {
  s = new CsiScene();
  disks = [];
  await s.driver.listen(s.endpoint);
  await s.start();
  await s.register();
  s.driver.take();
});
afterEach(async () => {
  assert.deepEqual(mountsBeneath(s.root), [], 'nothing is left mounted');
  for (const disk of disks) execFileSync('losetup', ['-d', disk]);
  await s.end();
});

/** The driver's device for a volume. */
function disk(handle: string): void {
  const file = join(s.root, handle);
  writeFileSync(file, '');
  truncateSync(file, 1 << 20);
  const device = execFileSync('losetup', ['-f', '--show', file], { encoding: 'utf8' }).trim();
  disks.push(device);
  s.driver.devices.set(handle, device);
}

const recorded = (scenario: string, phase: string): DriverCall[] =>
  readFileSync(join(import.meta.dirname, '..', 'golden', 'csi', scenario, 'csi-calls.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as DriverCall & { phase: string })
    .filter((call) => call.phase === phase && call.call !== 'NodeGetCapabilities')
    .map(({ call, request }) => ({ call, request }));

const asked = (): DriverCall[] =>
  JSON.parse(JSON.stringify(s.driver.take()).replaceAll(s.root, RECORDED_ROOT)) as DriverCall[];

/** Volumes are worked on side by side; of each of them the order is the recorded one. */
const byVolume = (calls: readonly DriverCall[]): Record<string, DriverCall[]> =>
  Object.groupBy(calls, ({ request }) =>
    typeof request['volume_id'] === 'string' ? request['volume_id'] : '',
  ) as Record<string, DriverCall[]>;

const withDevice = (name: string, uid: string, volumes: readonly Volume[]): Pod =>
  podWith(name, uid, [...volumes], {
    containers: [
      {
        name: 'c',
        volumeDevices: [{ name: 'raw', devicePath: '/dev/xvda' }],
        volumeMounts: volumes.filter((v) => v.name !== 'raw').map((v) => ({ name: v.name, mountPath: `/${v.name}` })),
      },
    ],
  });
const claim = (name: string, claimName: string): Volume => ({ name, persistentVolumeClaim: { claimName } });
const blockOnly = { volumeMode: 'Block' } as const;
const csi = { volumeAttributes: ATTRIBUTES };

test('pvc-block', { skip: noLoops }, async () => {
  const [pv, handle] = ['pvc-c284ba0a-587c-4f82-a8a0-e3060e78b2b8', 'da7c8007-e13f-11f1-b674-56a8e2a27fd3'];
  const uid = '5b15f8c3-0a2a-4101-9b1d-a27c652190f2';
  disk(handle);
  s.addClaim('blk', pv, handle, blockOnly, csi);
  const pod = withDevice('pvc-block', uid, [claim('raw', 'blk')]);
  await s.mount(pod);
  assert.deepEqual(asked(), recorded('pvc-block', 'create'));
  assertSameFiles(s.root, 'pvc-block', 'pod running', /volumeDevices/);
  const own = join(s.root, 'plugins/kubernetes.io/csi/volumeDevices');
  const bind = join(own, pv, 'dev', uid);
  assert.deepEqual(mountsBeneath(s.root).sort(), [join(own, 'publish', pv, uid), bind].sort());
  const loops = execFileSync('losetup', ['-l', '-n', '-O', 'RO,AUTOCLEAR,BACK-FILE'], { encoding: 'utf8' });
  assert.match(loops, new RegExp(`^ *0 +0 +${bind}$`, 'm'));
  const link = join(s.root, 'pods', uid, 'volumeDevices/kubernetes.io~csi', pv);
  assert.equal(s.kubelet.manager.mountsOf(uid).get('raw')?.devicePath, link);
  assert.deepEqual(s.events, [
    `pvc-block Normal SuccessfulMountVolume MapVolume.MapPodDevice succeeded for volume "${pv}" globalMapPath "${join(own, pv, 'dev')}"`,
    `pvc-block Normal SuccessfulMountVolume MapVolume.MapPodDevice succeeded for volume "${pv}" volumeMapPath "${join(s.root, 'pods', uid, 'volumeDevices/kubernetes.io~csi')}"`,
  ]);
  await s.unmount(pod);
  assert.deepEqual(asked(), recorded('pvc-block', 'delete'));
  assertSameFiles(s.root, 'pvc-block', 'pod deleted', /volumeDevices/);
  assert.ok(!execFileSync('losetup', ['-a'], { encoding: 'utf8' }).includes(bind), 'its loop device is gone');
});

test('restart, with a device, a file system and a volume of its own', { skip: noLoops }, async () => {
  const [keep, gone] = ['a5009706-7da8-4d6c-ac44-924a5fb14630', 'efd3710b-4ee2-43eb-8700-93afb831a2bb'];
  disk('bcba3bcb-e13d-11f1-b674-56a8e2a27fd3');
  s.addClaim('k', 'pvc-086e94c4-14e2-426f-8821-ec9e9544e69a', 'bca1fb9b-e13d-11f1-b674-56a8e2a27fd3', {}, csi);
  s.addClaim('b', 'pvc-bae4cf65-da82-4e2a-b57b-99f89285b94b', 'bcba3bcb-e13d-11f1-b674-56a8e2a27fd3', blockOnly, csi);
  s.addClaim('g', 'pvc-af5b5378-1568-4c09-baf0-8506f5519278', 'bccc4e87-e13d-11f1-b674-56a8e2a27fd3', {}, csi);
  const scratch: Volume = { name: 'scratch', csi: { driver: 'hostpath.csi.k8s.io' } };
  const kept = withDevice('restart-keep', keep, [claim('data', 'k'), claim('raw', 'b'), scratch]);
  await Promise.all([s.mount(kept), s.mount(podWith('restart-gone', gone, [claim('data', 'g')]))]);
  assert.deepEqual(byVolume(asked()), byVolume(recorded('restart', 'create')));
  assertSameFiles(s.root, 'restart', 'both pods running', ALL);
  await s.stop();
  assertSameFiles(s.root, 'restart', 'kubelet down', ALL);
  s.events.splice(0);
  await s.start();
  s.kubelet.manager.removeUnknown((uid) => uid === keep);
  const mounting = s.mount(kept);
  await s.register();
  await mounting;
  await s.kubelet.manager.waitUnmounted(gone, s.signal);
  assert.deepEqual(byVolume(asked()), byVolume(recorded('restart', 'kubelet started again')));
  assert.deepEqual(
    s.events.filter((event) => event.includes('SuccessfulMountVolume')),
    [],
    'nothing new was mapped',
  );
  await s.kubelet.podDirs.removeOrphan(gone, s.signal);
  assertSameFiles(s.root, 'restart', 'kubelet up again', ALL);
  await s.unmount(kept);
  await s.kubelet.podDirs.removeOrphan(keep, s.signal);
  assert.deepEqual(byVolume(asked()), byVolume(recorded('restart', 'delete restart-keep')));
  assertSameFiles(s.root, 'restart', 'all deleted', ALL);
});
