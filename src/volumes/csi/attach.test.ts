// Volumes that nobody attaches: a node that has all it can take, and a node whose volumes no controller looks after.
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { CsiScene, DRIVER, NODE, podWith } from '../../../test/fakes/csi-scene.ts';
import { rejectedFor } from '../../core/rejection.ts';
import { messageOf } from '../../lib/errors.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { attachmentName } from './csi-layout.ts';

const WAIT_MS = 123_000;
const pod = podWith('p', 'u', [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }]);

async function scene(t: TestContext, clock: ManualClock, set: (s: CsiScene) => void): Promise<CsiScene> {
  const s = new CsiScene(clock);
  t.after(() => s.end());
  set(s);
  await s.driver.listen(s.endpoint);
  await s.start();
  await s.register();
  s.addClaim('c', 'pv', 'h');
  return s;
}

const limits: [string, number | undefined, number | undefined, boolean][] = [
  ['no more volumes, for a driver that is asked for its limit', 60, 8, true],
  ['no more volumes, for a driver that is not', undefined, 8, false],
  ['another error', 60, 13, false],
  ['no answer yet', 60, undefined, false],
];
for (const [why, period, errorCode, rejected] of limits)
  test(`${why}: ${rejected ? 'the pod is rejected' : 'the pod goes on waiting'}`, async (t) => {
    const clock = new ManualClock();
    const s = await scene(t, clock, (made) => {
      made.refused.add('h');
      const spec = {
        ...made.csiDriver?.spec,
        ...(period === undefined ? {} : { nodeAllocatableUpdatePeriodSeconds: period }),
      };
      made.csiDriver = { metadata: { name: DRIVER }, spec };
    });
    const name = attachmentName('h', DRIVER, NODE);
    const attachError = errorCode === undefined ? {} : { attachError: { message: 'full', errorCode } };
    s.attached.set(name, { metadata: { name }, status: { attached: false, ...attachError } });
    const waiting = s.mount(pod).then(
      () => undefined,
      (err: unknown) => err,
    );
    await clock.advance(0);
    while (s.inUse.length === 0) await clock.advance(0);
    await clock.advance(WAIT_MS);
    const err = await waiting;
    const missing =
      'unmounted volumes=[data], unattached volumes=[data], failed to process volumes=[]: context deadline exceeded';
    assert.equal(rejectedFor(err), rejected ? 'VolumeAttachmentLimitExceeded' : undefined);
    if (rejected)
      assert.equal(messageOf(err), `Node has reached its volume attachment limit, rejecting pod. ${missing}`);
    else assert.ok(messageOf(err).startsWith(missing));
    assert.deepEqual(s.limitsAsked, rejected ? [DRIVER] : []);
  });

test('without a controller a CSI volume cannot be attached', async (t) => {
  const clock = new ManualClock();
  const s = await scene(t, clock, (made) => void (made.controllerAttaches = false));
  s.kubelet.manager.setDesired(pod);
  while (s.events.length === 0) await clock.advance(0);
  assert.deepEqual(s.events, [
    'p Warning FailedAttachVolume AttachVolume.Attach failed for volume "pv" : attaching volumes from the kubelet is not supported',
  ]);
  assert.deepEqual(
    s.driver.take().map(({ call }) => call),
    ['NodeGetInfo'],
  );
});

test('a volume that waits to be attached is mounted once its driver says that it need not be', async (t) => {
  const clock = new ManualClock();
  const s = await scene(t, clock, (made) => {
    made.refused.add('h');
    made.csiDriver = undefined;
  });
  const mounting = s.mount(pod);
  while (s.inUse.length === 0) await clock.advance(0);
  s.csiDriver = { metadata: { name: DRIVER }, spec: { attachRequired: false, fsGroupPolicy: 'File' } };
  s.kubelet.manager.retry('kubernetes.io/csi');
  await mounting;
  assert.deepEqual(s.inUse.at(-1), []);
  assert.deepEqual(s.events, []);
});
