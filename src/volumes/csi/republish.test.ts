// Drivers that want their volumes published with every sync of a pod may say so, or stop saying so, at any time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CsiScene, DRIVER, podWith } from '../../../test/fakes/csi-scene.ts';
import { until } from '../../../test/harness/until.ts';

const volumes = [
  ['of a claim', { name: 'v', persistentVolumeClaim: { claimName: 'c' } }],
  ['of the pod’s own', { name: 'v', csi: { driver: DRIVER } }],
] as const;
for (const [what, volume] of volumes)
  test(`a volume ${what} is published again as its driver wants it now`, async (t) => {
    const s = new CsiScene();
    t.after(() => s.end());
    const want = (requiresRepublish: boolean): void =>
      void (s.csiDriver = { metadata: { name: DRIVER }, spec: { ...s.csiDriver?.spec, requiresRepublish } });
    want(false);
    await s.driver.listen(s.endpoint);
    await s.start();
    await s.register();
    s.addClaim('c', 'pv', 'h');
    const pod = podWith('p', 'u', [volume]);
    const published = (): number => s.driver.take().filter(({ call }) => call === 'NodePublishVolume').length;
    await s.mount(pod);
    assert.equal(published(), 1);
    want(true);
    await s.mount(pod);
    await until('it is published again', () => published() === 1);
    want(false);
    await s.mount(pod);
    await s.unmount(pod);
    assert.equal(published(), 0);
  });
