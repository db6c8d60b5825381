// Giving a large volume to the group of its pod takes longer than all calls of its driver may.
import assert from 'node:assert/strict';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../../../test/harness/until.ts';
import { CsiScene, podWith } from '../../../test/fakes/csi-scene.ts';
import { ManualClock } from '../../lib/manual-clock.ts';

const FILES = 1000;
const TEN_MINUTES = 600_000;

test('a large volume is given to the group of its pod, however long that takes', async (t) => {
  const clock = new ManualClock();
  const s = new CsiScene(clock);
  t.after(() => s.end());
  s.driver.before = (call, request) => {
    const target = String(request['target_path']);
    if (call !== 'nodePublishVolume') return;
    mkdirSync(target);
    for (let i = 0; i < FILES; i++) writeFileSync(join(target, `file-${i}`), '');
  };
  await s.driver.listen(s.endpoint);
  await s.start();
  await s.register();
  s.addClaim('c', 'pv', 'h');
  const group = { securityContext: { fsGroup: 4711 } };
  const pod = podWith('p', 'u', [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }], group);
  const { manager } = s.kubelet;
  manager.setDesired(pod);
  await until('its files are being given away', () =>
    /giving its files to group 4711/.test(manager.blockedOn('u') ?? ''),
  );
  await clock.advance(TEN_MINUTES);
  const failures = (): string[] => s.events.filter((event) => event.includes('Failed'));
  await until('it is mounted, or failed', () => manager.mountsOf('u').has('v') || failures().length > 0);
  assert.deepEqual(failures(), []);
  assert.equal(s.driver.take().filter(({ call }) => call === 'NodePublishVolume').length, 1);
  assert.equal(statSync(join(manager.mountsOf('u').get('v')?.hostPath ?? '', `file-${FILES - 1}`)).gid, 4711);
});
