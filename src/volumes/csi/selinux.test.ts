// Volumes mounted with a label: what the driver is asked for, what is written down, and that nobody relabels their files.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { CsiScene, DRIVER, podWith } from '../../../test/fakes/csi-scene.ts';

const FILES = 'system_u:object_r:container_file_t:s0';
const level = 's0:c15,c25';
const label = `system_u:object_r:container_file_t:${level}`;
const podNamed = (name: string, own: string): ReturnType<typeof podWith> =>
  podWith(name, `uid-${name}`, [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }], {
    securityContext: { seLinuxOptions: { level: own } },
  });

async function scene(t: TestContext, accessModes: string[]): Promise<CsiScene> {
  const s = new CsiScene();
  t.after(() => s.end());
  s.fileContext = FILES;
  s.csiDriver = { metadata: { name: DRIVER }, spec: { ...s.csiDriver?.spec, seLinuxMount: true } };
  await s.driver.listen(s.endpoint);
  await s.start();
  await s.register();
  s.addClaim('c', 'pv', 'h', { accessModes, mountOptions: ['noatime'] });
  s.driver.take();
  return s;
}

const flagsOf = (s: CsiScene): unknown[] =>
  s.driver.take().map(({ request }) => {
    const { mount } = request['volume_capability'] as { mount?: { mount_flags?: string[] } };
    return mount?.mount_flags;
  });

test('a volume that one pod has to itself', async (t) => {
  const s = await scene(t, ['ReadWriteOncePod']);
  await s.mount(podNamed('p', level));
  const flags = ['noatime', `context="${label}"`];
  assert.deepEqual(flagsOf(s), [flags, flags]);
  const dir = join(s.root, 'pods/uid-p/volumes/kubernetes.io~csi/pv');
  const written = JSON.parse(readFileSync(join(dir, 'vol_data.json'), 'utf8')) as Record<string, string>;
  assert.equal(written['seLinuxMountContext'], label);
  assert.equal(s.kubelet.manager.mountsOf('uid-p').get('data')?.selinuxRelabel, false);
});

test('one that others may have is mounted as ever', async (t) => {
  const s = await scene(t, ['ReadWriteOnce']);
  await s.mount(podNamed('p', level));
  assert.deepEqual(flagsOf(s), [['noatime'], ['noatime']]);
});

test('with the gate a pod of another label waits until the volume is free', async (t) => {
  const s = await scene(t, ['ReadWriteOnce']);
  s.gates.add('SELinuxMount');
  await s.stop();
  await s.start();
  await s.register();
  await s.mount(podNamed('p', level));
  s.kubelet.manager.setDesired(podNamed('q', 's0:c1,c2'));
  await s.untilEvent();
  assert.deepEqual(s.events, [
    `q Warning FailedMount MountVolume.MountDevice failed for volume "pv" : waiting for unmount of volume "kubernetes.io/csi/${DRIVER}^h", because it is already mounted to a different pod with a different SELinux label`,
  ]);
  s.driver.take();
  await s.unmount(podNamed('p', level));
  await s.mount(podNamed('q', 's0:c1,c2'));
  assert.deepEqual(
    s.driver.take().map(({ call }) => call),
    ['NodeUnpublishVolume', 'NodeUnstageVolume', 'NodeStageVolume', 'NodePublishVolume'],
  );
});
