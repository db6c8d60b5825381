// A kubelet that ends amid a call of the driver: the next one finds what the driver may have made and takes it back.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { CsiScene, DRIVER, podWith } from '../../../test/fakes/csi-scene.ts';
import type { Pod } from '../../core/pod.ts';
import { VolumeLayout } from '../layout.ts';
import { CsiLayout, uniqueNameOf } from './csi-layout.ts';

const raw: Pod = podWith('p', 'u', [{ name: 'raw', persistentVolumeClaim: { claimName: 'c' } }], {
  containers: [{ name: 'c', volumeDevices: [{ name: 'raw', devicePath: '/dev/xvda' }] }],
});
const mounted: Pod = podWith('p', 'u', [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }]);

for (const [volumeMode, pod] of [
  ['Block', raw],
  ['Filesystem', mounted],
] as const) {
  for (const call of ['nodeStageVolume', 'nodePublishVolume'] as const)
    test(`${volumeMode}, ended amid ${call}, the pod removed meanwhile`, async (t) => {
      const s = new CsiScene();
      t.after(() => s.end());
      await s.driver.listen(s.endpoint);
      await s.start();
      await s.register();
      s.addClaim('c', 'pv', 'h', { volumeMode });
      const begun = new Promise<void>((resolve) => {
        s.driver.before = (name, _, signal) => {
          if (name !== call) return;
          resolve();
          return new Promise((_done, reject) => signal.addEventListener('abort', () => reject(new Error('gone'))));
        };
      });
      s.kubelet.manager.setDesired(pod);
      await begun;
      await s.stop();
      s.driver.take();
      const unstaged = new Promise<void>((resolve) => {
        s.driver.before = (name) => (name === 'nodeUnstageVolume' ? resolve() : undefined);
      });
      await s.start();
      await s.register();
      s.kubelet.manager.removeUnknown(() => false);
      await unstaged;
      const calls = s.driver.take().map((made) => made.call);
      const back = call === 'nodePublishVolume' ? ['NodeUnpublishVolume', 'NodeUnstageVolume'] : ['NodeUnstageVolume'];
      assert.deepEqual(calls, ['NodeGetInfo', ...back]);
    });
}

test('ended amid the write of the file that says what there is: its directories go, no driver is asked', async (t) => {
  const s = new CsiScene();
  t.after(() => s.end());
  const layout = new CsiLayout(new VolumeLayout(s.root));
  const dirs = [
    layout.volumeDir('u', 'pv'),
    layout.stageDir('hostpath.csi.k8s.io', 'h'),
    layout.blockDataDir('raw'),
  ] as const;
  for (const dir of dirs) {
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, 'vol_data.json.0123456789ab.tmp'), '');
  }
  mkdirSync(layout.globalMount('hostpath.csi.k8s.io', 'h'));
  await s.start();
  s.kubelet.manager.removeUnknown(() => false);
  await s.kubelet.manager.waitUnmounted('u', s.signal);
  assert.deepEqual(readdirSync(dirname(layout.volumeDir('u', 'pv'))), []);
  for (const dir of [dirs[1], layout.blockDir('raw')]) while (existsSync(dir)) await new Promise(setImmediate);
  assert.deepEqual(s.events, []);
});

test('a driver that is away, or a damaged file, keeps nobody else from being cleaned up', async (t) => {
  const s = new CsiScene();
  t.after(() => s.end());
  const layout = new CsiLayout(new VolumeLayout(s.root));
  const staged = (driver: string, handle: string, data: string): void => {
    mkdirSync(layout.globalMount(driver, handle), { recursive: true });
    writeFileSync(join(layout.stageDir(driver, handle), 'vol_data.json'), data);
  };
  const dataOf = (driverName: string, volumeHandle: string): string => JSON.stringify({ driverName, volumeHandle });
  staged('a.away', 'h', dataOf('a.away', 'h'));
  staged('b.damaged', 'h', '{');
  staged(DRIVER, 'h', dataOf(DRIVER, 'h'));
  await s.driver.listen(s.endpoint);
  await s.start();
  await s.register();
  s.kubelet.manager.removeUnknown(() => false);
  while (existsSync(layout.stageDir(DRIVER, 'h'))) await new Promise(setImmediate);
  assert.deepEqual(
    s.driver.take().map(({ call }) => call),
    ['NodeGetInfo', 'NodeUnstageVolume'],
  );
  for (const driver of ['a.away', 'b.damaged']) assert.ok(existsSync(layout.stageDir(driver, 'h')), driver);
});

test('files of a device that a power cut brought back keep it from nothing', async (t) => {
  const s = new CsiScene();
  t.after(() => s.end());
  const layout = new CsiLayout(new VolumeLayout(s.root));
  for (const dir of [layout.blockDataDir('raw'), layout.globalMapDir('raw'), layout.blockPublishDir('raw')])
    mkdirSync(dir, { recursive: true });
  const data = { driverName: DRIVER, volumeHandle: 'h' };
  writeFileSync(join(layout.blockDataDir('raw'), 'vol_data.json'), JSON.stringify(data));
  writeFileSync(join(layout.globalMapDir('raw'), 'uid'), '');
  writeFileSync(layout.blockPublishPath('raw', 'uid'), '');
  await s.driver.listen(s.endpoint);
  await s.start();
  await s.register();
  s.kubelet.manager.removeUnknown(() => false);
  while (existsSync(layout.blockDir('raw'))) await new Promise(setImmediate);
  assert.equal(existsSync(layout.blockPublishDir('raw')), false);
  assert.equal(s.driver.take().at(-1)?.call, 'NodeUnstageVolume');
});

for (const volumeMode of ['Filesystem', 'Block'] as const)
  test(`${volumeMode}: what an earlier run left staged is in use until the driver has unstaged it, tried again included`, async (t) => {
    const s = new CsiScene();
    t.after(() => s.end());
    const layout = new CsiLayout(new VolumeLayout(s.root));
    const dir = volumeMode === 'Block' ? layout.blockDataDir('pv') : layout.stageDir(DRIVER, 'h');
    mkdirSync(dir, { recursive: true });
    writeFileSync(
      join(dir, 'vol_data.json'),
      JSON.stringify({ driverName: DRIVER, volumeHandle: 'h', specVolID: 'pv' }),
    );
    const name = uniqueNameOf(DRIVER, 'h');
    const seen: string[][] = [];
    let asked = 0;
    s.driver.before = (call) => {
      if (call !== 'nodeUnstageVolume') return;
      seen.push(s.kubelet.manager.volumesInUse());
      if (++asked === 1) throw new Error('busy');
    };
    await s.driver.listen(s.endpoint);
    await s.start();
    assert.deepEqual(s.kubelet.manager.volumesInUse(), [name], 'before anything else is known');
    await s.register();
    while (s.kubelet.manager.volumesInUse().length > 0) {
      s.kubelet.manager.removeUnknown(() => false);
      await new Promise(setImmediate);
    }
    assert.deepEqual(seen, [[name], [name]]);
    assert.deepEqual(s.inUse.at(-1), [], 'and the node is told');
  });

test('of several volumes left staged each is reported as no longer in use by itself, however slow the driver of another', async (t) => {
  const s = new CsiScene();
  t.after(() => s.end());
  const layout = new CsiLayout(new VolumeLayout(s.root));
  const left = ['slow', 'quick', 'late'].map((driverName) => {
    const dir = layout.stageDir(driverName, 'h');
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, 'vol_data.json'), JSON.stringify({ driverName, volumeHandle: 'h' }));
    return uniqueNameOf(driverName, 'h');
  });
  const [slow, quick, late] = left as [string, string, string];
  const answer = Promise.withResolvers<void>();
  let slowAsked = 0;
  s.driver.before = (call, request) => {
    if (call !== 'nodeUnstageVolume' || !String(request['staging_target_path']).includes('/slow/')) return;
    slowAsked += 1;
    return answer.promise;
  };
  const untilReported = async (...names: string[]): Promise<void> => {
    while (s.inUse.at(-1)?.join() !== names.sort().join()) await new Promise(setImmediate);
  };
  await s.driver.listen(s.endpoint);
  await s.start();
  await untilReported(slow, quick, late);
  await s.register('slow');
  await s.register('quick');
  s.kubelet.manager.removeUnknown(() => false);
  await untilReported(slow, late);
  await s.register('late');
  await untilReported(slow);
  s.kubelet.manager.removeUnknown(() => false);
  answer.resolve();
  await untilReported();
  assert.equal(slowAsked, 1);
});

test('a disk that does not answer is not asked again and again for what was left', { timeout: 60_000 }, async (t) => {
  const s = new CsiScene();
  t.after(() => s.end());
  await s.start();
  const dir = new CsiLayout(new VolumeLayout(s.root)).stageDir(DRIVER, 'h');
  mkdirSync(dir, { recursive: true });
  const file = join(dir, 'vol_data.json');
  // Whoever reads it waits for somebody to write.
  execFileSync('mkfifo', [file]);
  for (let pass = 0; pass < 100; pass++) {
    s.kubelet.manager.removeUnknown(() => false);
    await stat(s.root);
  }
  await writeFile(file, '{');
});

test('a pod that comes for a volume which was left staged takes it over, and has it unstaged in the end', async (t) => {
  const s = new CsiScene();
  t.after(() => s.end());
  const layout = new CsiLayout(new VolumeLayout(s.root));
  mkdirSync(layout.stageDir(DRIVER, 'h'), { recursive: true });
  const data = JSON.stringify({ driverName: DRIVER, volumeHandle: 'h' });
  writeFileSync(join(layout.stageDir(DRIVER, 'h'), 'vol_data.json'), data);
  await s.driver.listen(s.endpoint);
  await s.start();
  s.addClaim('c', 'pv', 'h');
  await s.register();
  await s.kubelet.manager.waitMounted(mounted, s.signal);
  s.kubelet.manager.podRemoved('u');
  await s.kubelet.manager.waitUnmounted('u', s.signal);
  assert.deepEqual(
    s.driver
      .take()
      .map(({ call }) => call)
      .filter((call) => call.endsWith('Volume')),
    ['NodeStageVolume', 'NodePublishVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume'],
  );
  assert.deepEqual(s.kubelet.manager.volumesInUse(), []);
});
