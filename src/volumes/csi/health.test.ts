// What a driver says about the health of a volume: told with every look at its size, where the feature gate is on.
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { CsiScene, podWith } from '../../../test/fakes/csi-scene.ts';
import type { VolumeUsage } from '../volume-stats.ts';

const pod = podWith('p', 'u', [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }]);
const TOLD = 'p Warning VolumeConditionAbnormal Volume data: disk is on fire';

async function look(t: TestContext, gate: boolean, knows: boolean, abnormal: boolean): Promise<[unknown, string[]]> {
  const s = new CsiScene();
  t.after(() => s.end());
  if (gate) s.gates.add('CSIVolumeHealth');
  if (knows) s.driver.capabilities = [...s.driver.capabilities, 'VOLUME_CONDITION'];
  s.driver.condition = { abnormal, message: abnormal ? 'disk is on fire' : 'all is well' };
  await s.driver.listen(s.endpoint);
  await s.start();
  await s.register();
  s.addClaim('c', 'pv', 'h');
  await s.mount(pod);
  let usage: VolumeUsage | undefined;
  for (let times = 0; times < 2; times++)
    for await (const { volumes } of s.kubelet.manager.statsOf(['u'], s.signal)) usage = volumes.get('data');
  assert.equal(usage?.usedBytes, 40);
  return [usage.health?.abnormal, s.events];
}

const rows: [string, boolean, boolean, boolean, boolean | undefined, string[]][] = [
  ['abnormal', true, true, true, true, [TOLD, TOLD]],
  ['healthy', true, true, false, false, []],
  ['a driver that does not know', true, false, true, undefined, []],
  ['the gate is off', false, true, true, undefined, []],
];
for (const [what, gate, knows, abnormal, health, events] of rows)
  test(what, async (t) => assert.deepEqual(await look(t, gate, knows, abnormal), [health, events]));
