// Volumes of kinds that were moved to CSI, in a pod's own list and behind a claim: mounted by their drivers, and counted as
// migrated.
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { CsiScene, NODE, podWith } from '../../../test/fakes/csi-scene.ts';
import { attachmentName } from './csi-layout.ts';

const DRIVER = 'ebs.csi.aws.com';
const disk = { awsElasticBlockStore: { volumeID: 'aws://zone/vol-1', fsType: 'ext4' } };

async function scene(t: TestContext): Promise<CsiScene> {
  const s = new CsiScene();
  t.after(() => s.end());
  await s.driver.listen(s.endpoint);
  await s.start();
  await s.register(DRIVER);
  const name = attachmentName('vol-1', DRIVER, NODE);
  s.attached.set(name, { metadata: { name }, status: { attached: true } });
  s.driver.take();
  return s;
}

const counted = (s: CsiScene): string[] =>
  [...s.metrics.render().matchAll(/storage_operation_duration_seconds_count\{(.*)\} 1/g)].map(
    ([, labels]) => labels ?? '',
  );

test("a disk in a pod's own volumes", async (t) => {
  const s = await scene(t);
  s.attachAlso(DRIVER, 'vol-1');
  const pod = podWith('p', 'u', [{ name: 'data', ...disk }]);
  await s.mount(pod);
  const calls = s.driver.take();
  assert.deepEqual(
    calls.map(({ call, request }) => [call, request['volume_id']]),
    [
      ['NodeStageVolume', 'vol-1'],
      ['NodePublishVolume', 'vol-1'],
    ],
  );
  const target = `${s.root}/pods/u/volumes/kubernetes.io~csi/ebs.csi.aws.com-vol-1/mount`;
  assert.equal(calls[1]?.request['target_path'], target);
  assert.equal(s.kubelet.manager.mountsOf('u').get('data')?.hostPath, target);
  assert.deepEqual(s.inUse, [[`kubernetes.io/csi/${DRIVER}^vol-1`]]);
  await s.unmount(pod);
  const operations = ['verify_controller_attached_volume', 'volume_mount', 'volume_unmount', 'unmount_device'];
  assert.deepEqual(
    counted(s),
    operations.map(
      (name) => `migrated="true",operation_name="${name}",status="success",volume_plugin="kubernetes.io/csi:${DRIVER}"`,
    ),
  );
});

test('a disk behind a claim', async (t) => {
  const s = await scene(t);
  s.addClaim('c', 'pv', 'unused', { ...disk });
  const { csi: _, ...spec } = s.volumes.get('pv')?.spec ?? {};
  s.volumes.set('pv', { metadata: { name: 'pv' }, spec });
  s.attachAlso(DRIVER, 'vol-1');
  await s.mount(podWith('p', 'u', [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }]));
  assert.deepEqual(
    s.driver.take().map(({ call, request }) => [call, request['volume_id']]),
    [
      ['NodeStageVolume', 'vol-1'],
      ['NodePublishVolume', 'vol-1'],
    ],
  );
  assert.match(
    counted(s).join(),
    /^(migrated="true",operation_name="(verify_controller_attached_volume|volume_mount)"[^}]*,?){2}$/,
  );
});
