// A driver that fails, hangs or dies while it grows a volume or says how much one holds: the pod goes on, the claim says
// why, and others do not notice.
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { CsiScene, DRIVER, podWith } from '../../../test/fakes/csi-scene.ts';
import { until } from '../../../test/harness/until.ts';
import { GrpcCode, GrpcError, type GrpcCodeName } from '../../lib/grpc/status.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import type { Clock } from '../../lib/clock.ts';
import type { PersistentVolumeClaim } from '../../core/storage.ts';
import type { VolumeUsage } from '../volume-stats.ts';

const CODES = Object.keys(GrpcCode).filter((name) => name !== 'OK') as GrpcCodeName[];
/** After these the claim is not tried again until somebody changes it. */
const HOPELESS: ReadonlySet<GrpcCodeName> = new Set(['InvalidArgument', 'OutOfRange', 'NotFound']);

async function scene(t: TestContext, clock?: Clock): Promise<CsiScene> {
  const s = new CsiScene(clock);
  t.after(() => s.end());
  await s.driver.listen(s.endpoint);
  await s.start();
  await s.register();
  s.addClaim('a', 'pv-a', 'handle-a', { capacity: { storage: '8Mi' } });
  s.addClaim('b', 'pv-b', 'handle-b', { capacity: { storage: '8Mi' } });
  return s;
}

const podOf = (name: string): ReturnType<typeof podWith> =>
  podWith(name, `uid-${name}`, [{ name: 'data', persistentVolumeClaim: { claimName: name } }], { nodeName: 'n1' });

const failOnce = (s: CsiScene, code: GrpcCodeName): void => {
  let fails = 1;
  s.driver.before = (name) => {
    if (name === 'nodeExpandVolume' && fails-- > 0) throw new GrpcError(GrpcCode[code], 'on demand');
  };
};

const statusOf = (s: CsiScene): unknown => {
  const { capacity, allocatedResourceStatuses, conditions = [] } = s.claims.get('golden/a')?.status ?? {};
  const failure = conditions?.find(({ type }) => type === 'NodeResizeError')?.message;
  return { size: capacity?.['storage'], state: allocatedResourceStatuses?.['storage'], failure };
};
const grown = { size: '16Mi', state: undefined, failure: undefined };
const refused = (code: GrpcCodeName, state: string): unknown => ({
  size: '8Mi',
  state,
  failure: `failed to expand pvc with ${failureOf(code)}`,
});
const failureOf = (code: GrpcCodeName): string =>
  `Expander.NodeExpand failed to expand the volume ${HOPELESS.has(code) ? '' : ': '}rpc error: code = ${code} desc = on demand`;

test('nodeExpandVolume with the mount: after any code the pod gets its volume', async (t) => {
  await Promise.all(
    CODES.map(async (code) => {
      const s = await scene(t);
      s.grow('a', '8Mi', '16Mi');
      failOnce(s, code);
      await s.mount(podOf('a'));
      if (code === 'FailedPrecondition') {
        // The driver wants the volume out of use first: the pod starts, the volume stays as it is.
        assert.deepEqual(statusOf(s), refused(code, 'NodeResizeInProgress'));
        assert.deepEqual(s.events, []);
      } else {
        assert.deepEqual(statusOf(s), HOPELESS.has(code) ? refused(code, 'NodeResizeInfeasible') : grown, code);
        assert.equal(
          s.events[0],
          `a Warning FailedMount MountVolume.Setup failed while expanding volume for volume "pv-a" : ${failureOf(code)}`,
        );
      }
      await s.unmount(podOf('a'));
      assert.equal(s.driver.take().at(-1)?.call, 'NodeUnstageVolume');
    }),
  );
});

test('nodeExpandVolume under a running pod: after any code the volume stays mounted and grows if it can', async (t) => {
  await Promise.all(
    CODES.map(async (code) => {
      const s = await scene(t);
      await s.mount(podOf('a'));
      s.grow('a', '8Mi', '16Mi');
      failOnce(s, code);
      const isTooEarly = code === 'FailedPrecondition';
      const isOver = HOPELESS.has(code) || isTooEarly;
      const done = s.claimChanged();
      const failed = isTooEarly ? undefined : s.untilEvent();
      await s.mount(podOf('a'));
      await failed;
      if (isTooEarly) await until('the claim was told', () => s.patches.length === 2);
      else
        assert.equal(
          s.events[0],
          `a Warning VolumeResizeFailed NodeExpandVolume.NodeExpandVolume failed for volume "pv-a" : ${failureOf(code)}`,
        );
      if (!isOver) await done;
      const state = isTooEarly ? 'NodeResizeInProgress' : 'NodeResizeInfeasible';
      assert.deepEqual(statusOf(s), isOver ? refused(code, state) : grown, code);
      if (isTooEarly) assert.deepEqual(s.events, []);
      assert.equal(s.kubelet.manager.mountsOf('uid-a').size, 1);
      await s.unmount(podOf('a'));
      assert.equal(s.driver.take().at(-1)?.call, 'NodeUnstageVolume');
    }),
  );
});

test('nodeExpandVolume: a size that cannot be reached makes way for another', async (t) => {
  const s = await scene(t);
  s.grow('a', '8Mi', '16Mi');
  const spec = { ...claimOf(s).spec, resources: { requests: { storage: '12Mi' } } };
  s.claims.set('golden/a', { ...claimOf(s), spec });
  let fails = 2;
  s.driver.before = (name) => {
    if (name === 'nodeExpandVolume' && fails-- > 0) throw new GrpcError(GrpcCode.Internal, 'on demand');
  };
  await s.mount(podOf('a'));
  assert.deepEqual(claimOf(s).status?.allocatedResourceStatuses, { storage: 'NodeResizeInfeasible' });
});

test('nodeExpandVolume: a driver that is not there is no failure of the volume', async (t) => {
  const s = await scene(t);
  await s.mount(podOf('a'));
  s.grow('a', '8Mi', '16Mi');
  const plugin = { type: 'CSIPlugin', name: DRIVER, endpoint: s.endpoint, versions: ['1.0.0'] } as const;
  await s.drivers.register(plugin, s.signal);
  s.drivers.deregister(plugin);
  const failed = s.untilEvent();
  await s.mount(podOf('a'));
  await failed;
  const missing = `driver name ${DRIVER} not found in the list of registered CSI drivers`;
  assert.match(s.events[0] ?? '', new RegExp(`^a Warning VolumeResizeFailed .* : ${missing}$`));
  assert.deepEqual(statusOf(s), { size: '8Mi', state: 'NodeResizeInProgress', failure: undefined });
});

test('nodeExpandVolume is counted as such; a look at the claim is no mount', async (t) => {
  const s = await scene(t);
  await s.mount(podOf('a'));
  for (const size of ['16Mi', '24Mi']) {
    s.grow('a', '8Mi', size);
    const done = s.claimChanged();
    await s.mount(podOf('a'));
    await done;
  }
  // The second look finds nothing to do.
  await s.mount(podOf('a'));
  await s.unmount(podOf('a'));
  const shown = s.metrics.render();
  const counts = (name: string): string[] =>
    [...shown.matchAll(new RegExp(`${name}_count\\{.*operation_name="(\\w+)".*\\} (\\d+)`, 'g'))].map(
      ([, operation, count]) => `${operation} ${count}`,
    );
  const operations = counts('storage_operation_duration_seconds').sort();
  const once = ['unmount_device', 'verify_controller_attached_volume', 'volume_mount', 'volume_unmount'];
  assert.deepEqual(operations, [...once.map((operation) => `${operation} 1`), 'volume_fs_resize 2'].sort());
  assert.deepEqual(counts('volume_operation_total_seconds'), ['overall_volume_mount 1']);
});

test('nodeExpandVolume: a driver that hangs holds up its own volume only, until the pod goes', async (t) => {
  const s = await scene(t);
  await s.mount(podOf('a'));
  s.grow('a', '8Mi', '16Mi');
  const hung = new Promise<void>((resolve) => {
    s.driver.before = (name, request, signal) => {
      if (name !== 'nodeExpandVolume' || request['volume_id'] === 'handle-b') return;
      resolve();
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('gone'))));
    };
  });
  await s.mount(podOf('a')); // what is mounted is mounted: the pod's sync does not wait
  await hung;
  s.grow('b', '8Mi', '16Mi');
  await s.mount(podOf('b'));
  assert.deepEqual(s.claims.get('golden/b')?.status?.capacity, { storage: '16Mi' });
  await s.unmount(podOf('b'));
  await s.unmount(podOf('a'));
  assert.equal(s.driver.take().at(-1)?.call, 'NodeUnstageVolume');
});

test('nodeExpandVolume: a driver that dies and comes back grows the volume', async (t) => {
  const s = await scene(t);
  s.grow('a', '8Mi', '16Mi');
  let dies = 1;
  s.driver.before = async (name) => {
    if (name !== 'nodeExpandVolume' || dies-- <= 0) return;
    await s.driver.close();
    await s.driver.listen(s.endpoint);
  };
  await s.mount(podOf('a'));
  assert.deepEqual(statusOf(s), grown);
});

test('nodeExpandVolume: a volume that another node has grown is grown here too, and the claim is left alone', async (t) => {
  const s = await scene(t);
  s.addClaim('a', 'pv-a', 'handle-a', { capacity: { storage: '8Mi' }, accessModes: ['ReadWriteMany'] });
  const spec = { ...claimOf(s).spec, accessModes: ['ReadWriteMany'] };
  s.claims.set('golden/a', { ...claimOf(s), spec, status: { phase: 'Bound', capacity: { storage: '8Mi' } } });
  await s.mount(podOf('a'));
  s.grow('a', '8Mi', '16Mi');
  const allocatedResources = { storage: '16Mi' };
  s.claims.set('golden/a', {
    ...claimOf(s),
    status: { phase: 'Bound', capacity: { storage: '16Mi' }, allocatedResources },
  });
  s.driver.take();
  await s.mount(podOf('a'));
  const told = 'Normal FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume "pv-a" n1';
  while (s.events.length < 2) await new Promise(setImmediate);
  assert.deepEqual(s.events, [`a ${told}`, `claim a ${told}`]);
  assert.deepEqual(
    s.driver.take().map(({ call }) => call),
    ['NodeExpandVolume'],
  );
  assert.deepEqual(s.patches, []);
  await s.mount(podOf('a'));
  await s.unmount(podOf('a'));
  assert.ok(!s.driver.take().some(({ call }) => call === 'NodeExpandVolume'), 'once');
});

const claimOf = (s: CsiScene): PersistentVolumeClaim => s.claims.get('golden/a') ?? { metadata: { name: '' } };

async function stats(s: CsiScene): Promise<Map<string, VolumeUsage | undefined>> {
  const found = new Map<string, VolumeUsage | undefined>();
  for await (const { uid, volumes } of s.kubelet.manager.statsOf(['uid-a', 'uid-b'], s.signal))
    found.set(uid, volumes.get('data'));
  return found;
}

test('nodeGetVolumeStats: after any code the volume is left out this time, others are not', async (t) => {
  await Promise.all(
    CODES.map(async (code) => {
      // A driver is given five seconds: on a slow machine all these beside each other need more.
      const s = await scene(t, new ManualClock());
      for (const name of ['a', 'b']) await s.mount(podOf(name));
      let fails = 1;
      s.driver.before = (name, request) => {
        if (name === 'nodeGetVolumeStats' && request['volume_id'] === 'handle-a' && fails-- > 0)
          throw new GrpcError(GrpcCode[code], 'on demand');
      };
      const first = await stats(s);
      assert.deepEqual([first.get('uid-a'), first.get('uid-b')?.usedBytes], [undefined, 40], code);
      // The answer of the driver that it took too long is no reason to ask it less often.
      assert.equal((await stats(s)).get('uid-a')?.usedBytes, 40, code);
    }),
  );
});

test('nodeGetVolumeStats: a driver that hangs is given five seconds, then left alone for a while', async (t) => {
  const clock = new ManualClock();
  const s = await scene(t, clock);
  for (const name of ['a', 'b']) await s.mount(podOf(name));
  let asked = 0;
  let hangs = true;
  const hung = new Promise<void>((resolve) => {
    s.driver.before = (name, _, signal) => {
      if (name !== 'nodeGetVolumeStats') return;
      asked++;
      resolve();
      if (hangs)
        return new Promise((_done, reject) => signal.addEventListener('abort', () => reject(new Error('gone'))));
    };
  });
  const first = stats(s);
  await hung;
  await clock.advance(5_000);
  assert.deepEqual([...(await first).values()], [undefined, undefined]);
  assert.equal(asked, 1, 'nor is it asked for another volume');
  await stats(s);
  assert.equal(asked, 1);
  hangs = false;
  await clock.advance(300_000);
  assert.equal((await stats(s)).get('uid-b')?.usedBytes, 40);
});

test('nodeGetVolumeStats: a driver that dies and comes back is asked again', async (t) => {
  const s = await scene(t);
  for (const name of ['a', 'b']) await s.mount(podOf(name));
  await s.driver.close();
  assert.deepEqual([...(await stats(s)).values()], [undefined, undefined]);
  await s.driver.listen(s.endpoint);
  assert.equal((await stats(s)).get('uid-a')?.usedBytes, 40);
});
