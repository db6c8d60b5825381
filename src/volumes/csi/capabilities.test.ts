// What a driver can do is asked once for each connection: one that was started anew may be another program.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CsiScene, podWith } from '../../../test/fakes/csi-scene.ts';

test('a driver that was started anew under the same registration is asked again what it can do', async (t) => {
  const s = new CsiScene();
  t.after(() => s.end());
  s.driver.capabilities = ['STAGE_UNSTAGE_VOLUME'];
  await s.driver.listen(s.endpoint);
  await s.start();
  await s.register();
  s.addClaim('c', 'pv', 'h');
  const pods = ['first', 'second'].map((name) =>
    podWith(name, `u-${name}`, [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }]),
  );
  const calls = (): string[] => s.driver.take().map(({ call }) => call);
  for (const pod of pods.slice(0, 1)) {
    await s.mount(pod);
    await s.unmount(pod);
  }
  assert.deepEqual(calls(), [
    'NodeGetInfo',
    'NodeStageVolume',
    'NodePublishVolume',
    'NodeUnpublishVolume',
    'NodeUnstageVolume',
  ]);
  await s.driver.close();
  s.driver.capabilities = [];
  await s.driver.listen(s.endpoint);
  for (const pod of pods.slice(1)) {
    await s.mount(pod);
    await s.unmount(pod);
  }
  assert.deepEqual(calls(), ['NodePublishVolume', 'NodeUnpublishVolume']);
});
