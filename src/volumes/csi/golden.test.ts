// Recorded scenarios of the Go kubelet with a real driver: same calls with the same fields in the same order, same files.
// Questions for capabilities are left out: they are asked once per connection here.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { CsiScene, podWith } from '../../../test/fakes/csi-scene.ts';
import type { DriverCall } from '../../../test/fakes/scripted-csi-driver.ts';
import { assertSameFiles, RECORDED_ROOT as ROOT } from '../../../test/golden/csi-files.ts';
import type { Node } from '../../core/node.ts';
import type { CsiNode } from '../../kube/resources.ts';
import { GrpcCode, GrpcError } from '../../lib/grpc/status.ts';
import { csiNodeWithDriver, csiNodeWithoutDriver, nodeWithDriver, nodeWithoutDriver } from './node-objects.ts';

const GOLDEN = join(import.meta.dirname, '..', '..', '..', 'test', 'golden', 'csi');
const ATTRIBUTES = { 'storage.kubernetes.io/csiProvisionerIdentity': '1794778838418-6353-hostpath.csi.k8s.io' };
const CSI = { volumeAttributes: ATTRIBUTES };

type Recorded = DriverCall & { readonly phase: string };

const recorded = (scenario: string): Recorded[] =>
  readFileSync(join(GOLDEN, scenario, 'csi-calls.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Recorded);

const inPhase = (scenario: string, phase: string): DriverCall[] =>
  recorded(scenario)
    .filter((call) => call.phase === phase)
    .map(({ call, request }) => ({ call, request }));

async function scene(t: TestContext): Promise<CsiScene> {
  const s = new CsiScene();
  t.after(() => s.end());
  await s.driver.listen(s.endpoint);
  await s.start();
  await s.register();
  s.driver.take();
  return s;
}

/** What the driver was asked for, as if the root were the usual one. */
const asked = (s: CsiScene): DriverCall[] =>
  JSON.parse(JSON.stringify(s.driver.take()).replaceAll(s.root, ROOT)) as DriverCall[];

/** Names below a directory. */
const namesBelow = (dir: string): string[] => readdirSync(dir, { recursive: true, encoding: 'utf8' }).sort();

const claim = (claimName: string, readOnly?: boolean): Parameters<typeof podWith>[2] => [
  { name: 'data', persistentVolumeClaim: { claimName, ...(readOnly === undefined ? {} : { readOnly }) } },
];

test('pvc-fs: staged, published, unpublished, unstaged, and once more for another pod', async (t) => {
  const s = await scene(t);
  const [pv, handle] = ['pvc-0e1abf24-6bbd-4447-8cec-ae5249565f69', '34188b54-e13d-11f1-b674-56a8e2a27fd3'];
  s.addClaim('fs', pv, handle, {}, CSI);
  const uid = '5be3a071-0f00-45f8-9612-b4d14a2b0aeb';
  const first = podWith('pvc-fs', uid, claim('fs'));
  await s.mount(first);
  assert.deepEqual(asked(s), inPhase('pvc-fs', 'create'));
  assertSameFiles(s.root, 'pvc-fs', 'pod running');
  assert.equal(
    s.kubelet.manager.mountsOf(uid).get('data')?.hostPath,
    join(s.root, 'pods', uid, `volumes/kubernetes.io~csi/${pv}/mount`),
  );
  await s.unmount(first);
  assert.deepEqual(asked(s), inPhase('pvc-fs', 'delete'));
  assertSameFiles(s.root, 'pvc-fs', 'pod deleted');
  const second = podWith('pvc-fs-again', '2e39dc35-9e5a-4fbb-bfa4-98af0564179b', claim('fs'));
  await s.mount(second);
  assert.deepEqual(asked(s), inPhase('pvc-fs', 'create again'));
  assertSameFiles(s.root, 'pvc-fs', 'second pod running');
  await s.unmount(second);
  assert.deepEqual(asked(s), inPhase('pvc-fs', 'delete again'));
  const name = `kubernetes.io/csi/hostpath.csi.k8s.io^${handle}`;
  assert.deepEqual(s.inUse, [[name], [], [name], []]);
  assert.deepEqual(s.events, []);
});

test('registration: what the node and its CSINode say before, with and without the driver', () => {
  const object = <T>(name: string): T =>
    JSON.parse(readFileSync(join(GOLDEN, 'registration', `${name}.json`), 'utf8')) as T;
  const name = 'hostpath.csi.k8s.io';
  const on = { nodeId: 'n1', maxVolumesPerNode: 100, topology: {} };
  const withVersionOf = (csiNode: CsiNode, other: CsiNode): CsiNode => ({
    ...csiNode,
    metadata: { ...csiNode.metadata, resourceVersion: other.metadata.resourceVersion ?? '' },
  });
  const [before, after, removed] = ['before', 'after', 'removed'].map((step) => object<CsiNode>(`csinode-${step}`));
  assert.ok(before !== undefined && after !== undefined && removed !== undefined);
  assert.deepEqual(withVersionOf(csiNodeWithDriver(before, name, on) ?? before, after), after);
  assert.deepEqual(withVersionOf(csiNodeWithoutDriver(after, name) ?? after, removed), removed);
  const annotations = (step: string): Record<string, string> =>
    object<{ annotations: Record<string, string> }>(`node-${step}`).annotations;
  const node = (step: string): Node => ({ metadata: { name: 'n1', annotations: annotations(step) } });
  const added = nodeWithDriver(node('before'), name, on)?.metadata.annotations;
  assert.deepEqual({ ...annotations('before'), ...added }, annotations('after'));
  const taken = nodeWithoutDriver(node('after'), name)?.metadata.annotations;
  assert.deepEqual(taken, { 'csi.volume.kubernetes.io/nodeid': null });
});

test('inline: published without a stage, one of two read-only', async (t) => {
  const s = await scene(t);
  const uid = '5765f297-8fb2-43e8-910e-8f92d17f4625';
  const driver = 'hostpath.csi.k8s.io';
  const pod = podWith('inline', uid, [
    { name: 'scratch', csi: { driver, volumeAttributes: { foo: 'bar' } } },
    { name: 'ro', csi: { driver, readOnly: true } },
  ]);
  await s.mount(pod);
  const byPath = (calls: DriverCall[]): DriverCall[] =>
    calls.sort((a, b) => (String(a.request['target_path']) < String(b.request['target_path']) ? -1 : 1));
  assert.deepEqual(byPath(asked(s)), byPath(inPhase('inline', 'create')));
  assertSameFiles(s.root, 'inline', 'pod running', /none is shared/);
  await s.unmount(pod);
  assert.deepEqual(byPath(asked(s)), byPath(inPhase('inline', 'delete')));
  assertSameFiles(s.root, 'inline', 'pod deleted', /none is shared/);
  assert.deepEqual(s.inUse, []);
});

test('options: type, flags, secrets, one pod only, read-only', async (t) => {
  const s = await scene(t);
  for (const name of ['stage', 'publish'])
    s.secrets.set(`golden/${name}`, { metadata: { name }, data: { user: 'dQ==', pass: 'cA==' } });
  const csi = {
    ...CSI,
    fsType: 'ext4',
    nodeStageSecretRef: { name: 'stage', namespace: 'golden' },
    nodePublishSecretRef: { name: 'publish', namespace: 'golden' },
  };
  const spec = { accessModes: ['ReadWriteOncePod'], mountOptions: ['noatime', 'nodev'] };
  s.addClaim('opt', 'pvc-1c86790b-ea23-456f-afee-f5b7421740d4', 'b11903b9-e13d-11f1-b674-56a8e2a27fd3', spec, csi);
  const pod = podWith('options', 'bcdc2411-d540-4444-b896-6da80012d0e2', claim('opt', true));
  await s.mount(pod);
  assert.deepEqual(asked(s), inPhase('options', 'create'));
  assertSameFiles(s.root, 'options', 'pod running');
  assert.equal(s.kubelet.manager.mountsOf(pod.metadata.uid ?? '').get('data')?.readOnly, true);
  await s.unmount(pod);
  assert.deepEqual(asked(s), inPhase('options', 'delete'));
});

test('fsgroup: two pods on one claim, staged once, unstaged after the last', async (t) => {
  const s = await scene(t);
  s.addClaim('fsg', 'pvc-bb85dc40-a4d2-4738-8b60-d679cfd86470', '590a57cb-e13d-11f1-b674-56a8e2a27fd3', {}, CSI);
  const phases = [...new Set(recorded('fsgroup').map(({ phase }) => phase))];
  const gid = process.getgid?.() ?? 0;
  const pods = ['a86e7c9d-d6eb-4504-b5ed-6820457ac907', '746c8fd3-7951-4cdd-8038-1'].map((uid, i) => {
    const full = recorded('fsgroup')
      .map(({ request }) => /pods\/([^/]+)/.exec(String(request['target_path']))?.[1] ?? '')
      .find((found) => found.startsWith(uid));
    const name = i === 0 ? 'fsgroup' : 'fsgroup-second';
    return podWith(name, full ?? uid, claim('fsg'), { securityContext: { fsGroup: gid } });
  });
  const named = inPhase('fsgroup', phases[1] ?? '')[0]?.request['volume_context'] as Record<string, string>;
  const [first, second] = pods as [(typeof pods)[0], (typeof pods)[0]];
  const renamed = { ...second, metadata: { ...second.metadata, name: named['csi.storage.k8s.io/pod.name'] ?? '' } };
  await s.mount(first);
  assert.deepEqual(asked(s), inPhase('fsgroup', phases[0] ?? ''));
  assertSameFiles(s.root, 'fsgroup', 'first pod running');
  await s.mount(renamed);
  assert.deepEqual(asked(s), inPhase('fsgroup', phases[1] ?? ''));
  assertSameFiles(s.root, 'fsgroup', 'second pod beside it');
  await s.unmount(first);
  assert.deepEqual(asked(s), inPhase('fsgroup', phases[2] ?? ''));
  await s.unmount(renamed);
  assert.deepEqual(asked(s), inPhase('fsgroup', phases[3] ?? ''));
});

test('restart: what still runs is staged and published again, what is gone goes', async (t) => {
  const s = await scene(t);
  const keep = 'a5009706-7da8-4d6c-ac44-924a5fb14630';
  const gone = 'efd3710b-4ee2-43eb-8700-93afb831a2bb';
  s.addClaim('k', 'pvc-086e94c4-14e2-426f-8821-ec9e9544e69a', 'bca1fb9b-e13d-11f1-b674-56a8e2a27fd3', {}, CSI);
  s.addClaim('g', 'pvc-af5b5378-1568-4c09-baf0-8506f5519278', 'bccc4e87-e13d-11f1-b674-56a8e2a27fd3', {}, CSI);
  const inline = { name: 'scratch', csi: { driver: 'hostpath.csi.k8s.io' } };
  const kept = podWith('restart-keep', keep, [...claim('k'), inline]);
  await Promise.all([s.mount(kept), s.mount(podWith('restart-gone', gone, claim('g')))]);
  const ordered = (calls: DriverCall[]): DriverCall[] =>
    calls
      .filter(({ request }) => !JSON.stringify(request).includes('volumeDevices'))
      .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  assert.deepEqual(ordered(asked(s)), ordered(inPhase('restart', 'create')));
  await s.stop();
  await s.start();
  assert.deepEqual(s.kubelet.manager.volumesInUse().length, 2, 'nobody may detach what is found');
  s.kubelet.manager.removeUnknown((uid) => uid === keep);
  const mounting = s.mount(kept);
  await s.register();
  await mounting;
  await s.kubelet.manager.waitUnmounted(gone, s.signal);
  assert.deepEqual(ordered(asked(s)), ordered(inPhase('restart', 'kubelet started again')));
  assert.equal(
    s.events.every((event) => event.includes('not found in the list of registered CSI drivers')),
    true,
  );
  await s.unmount(kept);
  assert.deepEqual(ordered(asked(s)), ordered(inPhase('restart', 'delete restart-keep')));
  assert.deepEqual(namesBelow(join(s.root, 'plugins/kubernetes.io/csi')), ['hostpath.csi.k8s.io']);
});

test('expand: under a running pod, and with the next pod', async (t) => {
  const s = await scene(t);
  const [pv, handle] = ['pvc-c337d663-a8e4-4729-bdd7-c9922a0d16b3', '61f4de53-e13d-11f1-b674-56a8e2a27fd3'];
  s.addClaim('grow', pv, handle, { capacity: { storage: '8Mi' } }, CSI);
  const pod = (uid: string): ReturnType<typeof podWith> => podWith('expand', uid, claim('grow'), { nodeName: 'n1' });
  const first = pod('16e24157-fa76-467b-bd17-87fe04f62bb8');
  await s.mount(first);
  assert.deepEqual(asked(s), inPhase('expand', 'create'));
  assertSameFiles(s.root, 'expand', 'pod running');
  s.grow('grow', '8Mi', '16Mi');
  const expanded = s.claimChanged();
  await s.mount(first);
  await expanded;
  assert.deepEqual(asked(s), inPhase('expand', 'claim patched to 16Mi'));
  assertSameFiles(s.root, 'expand', 'expanded');
  const told = `Normal FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume "${pv}" n1`;
  assert.deepEqual(s.events, [`expand ${told}`, `claim grow ${told}`]);
  assert.deepEqual(s.patches, [
    {
      metadata: { resourceVersion: '7' },
      status: { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } },
    },
    {
      status: {
        capacity: { storage: '16Mi' },
        allocatedResourceStatuses: null,
        conditions: null,
      },
    },
  ]);
  await s.unmount(first);
  assert.deepEqual(asked(s), inPhase('expand', 'delete'));
  s.grow('grow', '16Mi', '24Mi');
  const second = pod('158dee62-2ad1-41ca-a3e2-7f1fde752822');
  await s.mount(second);
  assert.deepEqual(asked(s), inPhase('expand', 'create again'));
  assert.deepEqual(s.claims.get('golden/grow')?.status?.capacity, { storage: '24Mi' });
  await s.unmount(second);
  assert.deepEqual(asked(s), inPhase('expand', 'delete again'));
});

test('a driver says how much its volumes hold', async (t) => {
  const s = await scene(t);
  s.addClaim('c', 'pv', 'h');
  const pod = podWith('p', 'u', claim('c'));
  await s.mount(pod);
  s.driver.take();
  for await (const { volumes } of s.kubelet.manager.statsOf(['u'], s.signal)) {
    const { tookMs = -1, ...said } = volumes.get('data') ?? {};
    assert.ok(tookMs >= 0);
    assert.deepEqual(said, {
      usedBytes: 40,
      capacityBytes: 100,
      availableBytes: 60,
      inodesUsed: 1,
      inodes: 10,
      inodesFree: 9,
      source: 'hostpath.csi.k8s.io',
    });
  }
  const path = join(ROOT, 'pods/u/volumes/kubernetes.io~csi/pv/mount');
  assert.deepEqual(asked(s), [{ call: 'NodeGetVolumeStats', request: { volume_id: 'h', volume_path: path } }]);
  await s.unmount(pod);
  const counted =
    /storage_operation_duration_seconds_count\{migrated="false",operation_name="(\w+)",status="success",volume_plugin="kubernetes.io\/csi:hostpath.csi.k8s.io"\} 1/g;
  const names = new Set([...s.metrics.render().matchAll(counted)].map(([, name]) => name));
  assert.deepEqual(
    names,
    new Set(['verify_controller_attached_volume', 'volume_mount', 'volume_unmount', 'unmount_device']),
  );
});

test('what a killed run left staged is unstaged once all pods are known', async (t) => {
  const s = await scene(t);
  s.addClaim('c', 'pv', 'h');
  const pod = podWith('p', 'u', claim('c'));
  await s.mount(pod);
  await s.stop();
  // Killed between the removal of the pod's directory and the call that unstages.
  rmSync(join(s.root, 'pods', 'u'), { recursive: true });
  s.driver.take();
  await s.start();
  s.kubelet.manager.removeUnknown(() => false);
  const unstaged = new Promise<void>((resolve) => {
    s.driver.before = (call) => (call === 'nodeUnstageVolume' ? resolve() : undefined);
  });
  await s.register();
  await unstaged;
  assert.deepEqual(
    asked(s).map(({ call, request }) => [call, request['volume_id']]),
    [
      ['NodeGetInfo', undefined],
      ['NodeUnstageVolume', 'h'],
    ],
  );
  await s.mount(pod);
  await s.unmount(pod);
  assert.deepEqual(namesBelow(join(s.root, 'plugins/kubernetes.io/csi')), ['hostpath.csi.k8s.io']);
});

test('after a restart, a refused stage for a new pod takes nothing away from the pod that runs', async (t) => {
  const s = await scene(t);
  s.addClaim('c', 'pv', 'h');
  await s.mount(podWith('runs', 'u1', claim('c')));
  await s.stop();
  await s.start();
  s.driver.before = (call) => {
    if (call === 'nodeStageVolume') throw new GrpcError(GrpcCode.InvalidArgument, 'no');
  };
  await s.register();
  s.kubelet.manager.setDesired(podWith('new', 'u2', claim('c')));
  await s.untilEvent();
  const shared = namesBelow(join(s.root, 'plugins/kubernetes.io/csi')).map((name) => name.split('/').at(-1) ?? '');
  assert.deepEqual(
    ['globalmount', 'vol_data.json'].filter((name) => !shared.includes(name)),
    [],
  );
});

test('a driver is forgotten by the registration that brought it, and by no other', async (t) => {
  const s = await scene(t);
  const info = (version: string): Parameters<typeof s.drivers.register>[0] => ({
    type: 'CSIPlugin',
    name: 'hostpath.csi.k8s.io',
    endpoint: s.endpoint,
    versions: [version],
  });
  assert.throws(() => s.drivers.validate(info('1.0.0')), /already registered with a higher supported version: "1.0.0"/);
  const [old, newer] = [info('1.1.0'), info('1.2.0')];
  for (const plugin of [old, newer]) {
    s.drivers.validate(plugin);
    await s.drivers.register(plugin, s.signal);
  }
  s.drivers.deregister(old);
  assert.deepEqual(s.drivers.names(), ['hostpath.csi.k8s.io']);
  s.drivers.deregister(newer);
  assert.deepEqual(s.drivers.names(), []);
});
