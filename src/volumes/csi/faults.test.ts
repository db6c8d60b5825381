// A driver that fails, hangs or dies in each of its calls: the pod gets its volume once the driver behaves, every volume
// that may be there is taken down, nothing is left, and other pods do not notice.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test, type TestContext } from 'node:test';
import { CsiScene, podWith } from '../../../test/fakes/csi-scene.ts';
import { GrpcCode, GrpcError, type GrpcCodeName } from '../../lib/grpc/status.ts';
import { isFinal } from './csi-errors.ts';

const CODES = Object.keys(GrpcCode).filter((name) => name !== 'OK') as GrpcCodeName[];
const CALLS = [
  'nodeGetCapabilities',
  'nodeStageVolume',
  'nodePublishVolume',
  'nodeUnpublishVolume',
  'nodeUnstageVolume',
] as const;
type Call = (typeof CALLS)[number];

async function scene(t: TestContext): Promise<CsiScene> {
  const s = new CsiScene();
  t.after(() => s.end());
  await s.driver.listen(s.endpoint);
  await s.start();
  await s.register();
  s.addClaim('a', 'pv-a', 'handle-a');
  s.addClaim('b', 'pv-b', 'handle-b');
  return s;
}

const podOf = (name: string): ReturnType<typeof podWith> =>
  podWith(name, `uid-${name}`, [{ name: 'data', persistentVolumeClaim: { claimName: name } }]);

/** Directories and files of volumes that are left. */
const left = (s: CsiScene): string[] =>
  execFileSync('find', [s.root, '-name', 'pv-*', '-o', '-name', 'globalmount', '-o', '-name', 'vol_data.json'], {
    encoding: 'utf8',
  })
    .split('\n')
    .filter((line) => line !== '');

const TAKES_BACK: Partial<Record<Call, string>> = {
  nodeStageVolume: 'NodeUnstageVolume',
  nodePublishVolume: 'NodeUnpublishVolume',
};

for (const call of CALLS) {
  test(`${call}: after any code the pod gets its volume, and gives it back`, async (t) => {
    await Promise.all(
      CODES.map(async (code) => {
        const s = await scene(t);
        let fails = 1;
        s.driver.before = (name) => {
          if (name === call && fails-- > 0) throw new GrpcError(GrpcCode[code], 'on demand');
        };
        await s.mount(podOf('a'));
        if (call === 'nodeStageVolume' || call === 'nodePublishVolume') {
          const stage = call === 'nodeStageVolume' ? 'MountDevice' : 'SetUp';
          assert.deepEqual(s.events, [
            `a Warning FailedMount MountVolume.${stage} failed for volume "pv-a" : rpc error: code = ${code} desc = on demand`,
          ]);
        }
        await s.unmount(podOf('a'));
        assert.deepEqual(left(s), [], code);
        const calls = s.driver.take().map((c) => c.call);
        assert.equal(calls.at(-1), 'NodeUnstageVolume');
      }),
    );
  });

  const back = TAKES_BACK[call];
  const leaves = back === undefined ? undefined : `${call}: a pod that goes after a failure leaves nothing`;
  if (leaves !== undefined)
    test(leaves, async (t) => {
      await Promise.all(
        CODES.map(async (code) => {
          const s = await scene(t);
          s.driver.before = (name) => {
            if (name === call) throw new GrpcError(GrpcCode[code], 'on demand');
          };
          s.kubelet.manager.setDesired(podOf('a'));
          await s.untilEvent();
          await s.unmount(podOf('a'));
          assert.deepEqual(left(s), [], code);
          const asked = s.driver.take().some((c) => c.call === back);
          assert.equal(asked, !isFinal(new GrpcError(GrpcCode[code], '')), `${back} after ${code}`);
        }),
      );
    });

  test(`${call}: a driver that hangs holds up its own volume only, until the pod goes`, async (t) => {
    const s = await scene(t);
    const isTakingDown = call === 'nodeUnpublishVolume' || call === 'nodeUnstageVolume';
    if (isTakingDown) await s.mount(podOf('a'));
    await s.mount(podOf('b'));
    await s.unmount(podOf('b'));
    let hung = 0;
    s.driver.before = (name, request, signal) => {
      if (name !== call || request['volume_id'] === 'handle-b' || hung++ > 0) return;
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('gone'))));
    };
    if (isTakingDown) s.kubelet.manager.podRemoved('uid-a');
    else s.kubelet.manager.setDesired(podOf('a'));
    await s.mount(podOf('b'));
    await s.unmount(podOf('b'));
    assert.equal(s.kubelet.manager.hasMounts('uid-b'), false);
    if (isTakingDown) return;
    await s.unmount(podOf('a'));
    assert.deepEqual(left(s), []);
  });

  test(`${call}: a driver that dies and comes back finishes what it began`, async (t) => {
    const s = await scene(t);
    let dies = 1;
    s.driver.before = async (name) => {
      if (name !== call || dies-- <= 0) return;
      await s.driver.close();
      await s.driver.listen(s.endpoint);
    };
    await s.mount(podOf('a'));
    await s.unmount(podOf('a'));
    assert.deepEqual(left(s), []);
  });
}

test('nodeUnstageVolume: after a failure the next pod has the volume staged again', async (t) => {
  const s = await scene(t);
  await s.mount(podOf('a'));
  const refused = new Promise<void>((resolve) => {
    s.driver.before = (name) => {
      if (name !== 'nodeUnstageVolume') return;
      resolve();
      throw new GrpcError(GrpcCode.DeadlineExceeded, 'on demand');
    };
  });
  s.kubelet.manager.podRemoved('uid-a');
  await refused;
  s.driver.take();
  const next = podWith('next', 'uid-next', [{ name: 'data', persistentVolumeClaim: { claimName: 'a' } }]);
  await s.mount(next);
  const calls = s.driver.take().map(({ call }) => call);
  assert.deepEqual(calls.slice(calls.indexOf('NodeStageVolume')), ['NodeStageVolume', 'NodePublishVolume']);
  s.driver.before = () => undefined;
  await s.unmount(next);
  await s.kubelet.manager.waitUnmounted('uid-a', s.signal);
  assert.deepEqual(left(s), []);
});

test('nodeUnpublishVolume: pods that go at once give a volume back one after the other, as drivers take one call at a time', async (t) => {
  const s = await scene(t);
  const pods = ['one', 'two', 'three'].map((name) =>
    podWith(name, `uid-${name}`, [{ name: 'data', persistentVolumeClaim: { claimName: 'a' } }]),
  );
  for (const pod of pods) await s.mount(pod);
  let [busy, refused] = [false, 0];
  s.driver.before = async (name) => {
    if (name !== 'nodeUnpublishVolume') return;
    if (busy) {
      refused++;
      throw new GrpcError(GrpcCode.Aborted, 'an operation with the given volume is under way');
    }
    busy = true;
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    busy = false;
  };
  await Promise.all(pods.map((pod) => s.unmount(pod)));
  assert.equal(refused, 0);
  const calls = s.driver.take().map(({ call }) => call);
  const back = 'NodeUnpublishVolume';
  assert.deepEqual(calls.slice(-4), [back, back, back, 'NodeUnstageVolume']);
});
