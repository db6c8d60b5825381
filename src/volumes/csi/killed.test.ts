// A kubelet that ends amid a call of the driver: the next one finds what the driver may have made and takes it back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CsiScene, podWith } from '../../../test/fakes/csi-scene.ts';
import type { Pod } from '../../core/pod.ts';

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
