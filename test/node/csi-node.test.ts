// Claims on a whole node: API server with the controllers of volumes, kubelet process, containerd, and our CSI driver as a
// process of its own.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { uniqueNameOf } from '../../src/volumes/csi/csi-layout.ts';
import type { KubeObject } from '../../src/core/meta.ts';
import type { KubeEvent, Node as NodeObject } from '../../src/core/node.ts';
import type { Pod, Volume } from '../../src/core/pod.ts';
import type { PersistentVolume } from '../../src/core/storage.ts';
import {
  CSI_NODES,
  EVENTS,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  type Resource,
} from '../../src/kube/resources.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { until } from '../harness/until.ts';
import { mountsBeneath } from './volumes-setup.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'devcluster', 'csi-hostpath', 'main.ts');
const DRIVER = 'hostpath.csi.kubelet-dev';
const namespace = 'default';
const never = new AbortController().signal;

describe('claims on a whole node', () => {
  let node: TestNode;
  let driver: ChildProcess;
  let root: string;
  const dir = mkdtempSync(join(tmpdir(), 'csi-node-'));

  before(async () => {
    node = await startNode({ apiServer: { csiDrivers: [{ name: DRIVER, endpoint: join(dir, 'csi.sock') }] } });
    root = join(node.dir, 'kubelet');
    const metadata = { name: 'default', namespace };
    const accounts: Resource<KubeObject> = { base: '/api/v1', plural: 'serviceaccounts' };
    await node.client
      .create(accounts, { namespace }, { apiVersion: 'v1', kind: 'ServiceAccount', metadata }, never)
      .catch(() => undefined);
    await startDriver();
  });
  after(async () => {
    for (const pod of (await node.client.list(PODS, { namespace }, never)).items) await remove(pod.metadata.name);
    await until('nothing is mounted', () => mountsBeneath(root).length === 0);
    driver.kill('SIGTERM');
    await node.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  async function startDriver(): Promise<void> {
    const args = [
      `--node-id=${NODE_NAME}`,
      `--directory=${join(dir, 'data')}`,
      `--endpoint=${join(dir, 'csi.sock')}`,
      `--registry=${join(root, 'plugins_registry')}`,
      `--record=${join(dir, 'calls.jsonl')}`,
      '--backing=directory',
    ];
    driver = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
    await until('CSINode names the driver', async () => {
      const { spec } = await node.client.get(CSI_NODES, { name: NODE_NAME }, never);
      return spec.drivers?.some(({ name, nodeID }) => name === DRIVER && nodeID === NODE_NAME) === true;
    });
  }

  const claim = (name: string, volumeMode: 'Filesystem' | 'Block' = 'Filesystem'): Promise<KubeObject> =>
    node.client.create(
      PERSISTENT_VOLUME_CLAIMS,
      { namespace },
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name, namespace },
        spec: { accessModes: ['ReadWriteOnce'], volumeMode, resources: { requests: { storage: '8Mi' } } },
      },
      never,
    );
  const volumeOf = async (name: string): Promise<PersistentVolume> => {
    const { spec } = await node.client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, never);
    return node.client.get(PERSISTENT_VOLUMES, { name: spec?.volumeName ?? '' }, never);
  };

  const create = (name: string, volumes: readonly Volume[], command: string): Promise<Pod> =>
    node.client.create(
      PODS,
      { namespace },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace },
        spec: {
          nodeName: NODE_NAME,
          terminationGracePeriodSeconds: 0,
          automountServiceAccountToken: false,
          volumes,
          containers: [
            {
              name: 'c',
              image: 'localhost/busybox:latest',
              imagePullPolicy: 'Never',
              command: ['sh', '-c', command],
              volumeMounts: volumes
                .filter(({ name: of }) => of !== 'raw')
                .map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` })),
              volumeDevices: volumes
                .filter(({ name: of }) => of === 'raw')
                .map(({ name: of }) => ({ name: of, devicePath: '/dev/xvda' })),
            },
          ],
        },
      },
      never,
    );
  const read = (name: string): Promise<Pod> => node.client.get(PODS, { namespace, name }, never);
  const runs = async (name: string): Promise<boolean> =>
    (await read(name)).status?.containerStatuses?.[0]?.state.running !== undefined;
  async function remove(name: string): Promise<void> {
    await node.client.delete(PODS, { namespace, name }, { gracePeriodSeconds: 0 }, never).catch(() => undefined);
    await until(`${name} is gone`, () =>
      read(name).then(
        () => false,
        () => true,
      ),
    );
  }
  const inUse = async (): Promise<readonly string[]> =>
    ((await node.client.get(NODES, { name: NODE_NAME }, never)) as NodeObject).status?.volumesInUse ?? [];
  const eventsOf = async (name: string): Promise<string[]> =>
    (await node.client.list(EVENTS, { namespace }, never)).items
      .filter((event: KubeEvent) => event.involvedObject.name === name)
      .map((event: KubeEvent) => `${event.reason}: ${event.message}`);
  const claimed = (claimName: string): Volume => ({ name: 'data', persistentVolumeClaim: { claimName } });
  const called = (): string[] =>
    readFileSync(join(dir, 'calls.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { call: string }).call)
      .filter((call) => /Stage|Publish|Unstage|Unpublish/.test(call) && call.startsWith('Node'));

  it('a pod writes to its claim, the next one reads it', async () => {
    await claim('one');
    await create(
      'writer',
      [claimed('one'), { name: 'scratch', csi: { driver: DRIVER } }],
      'echo kept > /data/f; sleep 1000',
    );
    await until('the pod runs', () => runs('writer'));
    const handle = (await volumeOf('one')).spec.csi?.volumeHandle ?? '';
    assert.deepEqual(await inUse(), [uniqueNameOf(DRIVER, handle)]);
    await remove('writer');
    await until('nothing is in use', async () => (await inUse()).length === 0);
    assert.deepEqual(mountsBeneath(root), []);
    await create('reader', [claimed('one')], 'test "$(cat /data/f)" = kept && sleep 1000');
    await until('the second pod runs', () => runs('reader'));
    assert.deepEqual(await node.refusals(), []);
  });

  it('a restart of the kubelet leaves a running pod alone', async () => {
    const before = (await read('reader')).status?.containerStatuses?.[0];
    const calls = called().length;
    await node.kubelet.kill('SIGKILL');
    await node.kubelet.start(node.healthzPort);
    const again = (): string => called().slice(calls).join();
    await until('it is published again', () => again() === 'NodeStageVolume,NodePublishVolume');
    const after = (await read('reader')).status?.containerStatuses?.[0];
    assert.equal(after?.containerID, before?.containerID);
    assert.equal(after?.restartCount, 0);
    await remove('reader');
    await until('it is taken down', () => again().endsWith(',NodeUnpublishVolume,NodeUnstageVolume'));
  });

  it('a claim that is missing or not bound is told, and the pod starts once it is', async () => {
    await create('early', [claimed('two')], 'sleep 1000');
    const expected =
      'FailedMount: Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: error processing PVC default/two: failed to fetch PVC from API server: persistentvolumeclaims "two" not found';
    await until('the event is there', async () => (await eventsOf('early')).includes(expected));
    await claim('two');
    await until('the pod runs', () => runs('early'));
  });

  it('a driver that goes is forgotten, and serves again when it is back', async () => {
    driver.kill('SIGTERM');
    await until('CSINode forgets the driver', async () => {
      const { spec } = await node.client.get(CSI_NODES, { name: NODE_NAME }, never);
      return (spec.drivers ?? []).length === 0;
    });
    await create('late', [{ name: 'scratch', csi: { driver: DRIVER } }], 'sleep 1000');
    const expected = `FailedMount: MountVolume.SetUp failed for volume "scratch" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name ${DRIVER} not found in the list of registered CSI drivers`;
    await until('the event is there', async () => (await eventsOf('late')).includes(expected));
    await startDriver();
    await until('the pod runs', () => runs('late'));
    assert.deepEqual(await node.refusals(), []);
  });

  it('a claim that grows is grown on the node', async () => {
    const size = { storage: '16Mi' };
    const where = { namespace, name: 'two' };
    await node.client.patch(PERSISTENT_VOLUME_CLAIMS, where, { spec: { resources: { requests: size } } }, never);
    await until('the node is asked to', async () => {
      const { status } = await node.client.get(PERSISTENT_VOLUME_CLAIMS, where, never);
      return status?.allocatedResourceStatuses?.['storage'] === 'NodeResizePending';
    });
    await remove('early');
    await create('grown', [claimed('two')], 'sleep 1000');
    await until('the pod runs', () => runs('grown'));
    const { status: after } = await node.client.get(PERSISTENT_VOLUME_CLAIMS, where, never);
    assert.deepEqual([after?.capacity, after?.allocatedResourceStatuses], [size, undefined]);
    const pv = (await volumeOf('two')).metadata.name;
    const told = `FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "${pv}" n1`;
    await until('pod and claim are told', async () =>
      (await Promise.all([eventsOf('grown'), eventsOf('two')])).every((events) => events.includes(told)),
    );
    assert.deepEqual(await node.refusals(), []);
  });

  it('a claim in block mode is a device in the container, also after a restart of the kubelet', async () => {
    await claim('three', 'Block');
    const raw: Volume = { name: 'raw', persistentVolumeClaim: { claimName: 'three' } };
    await create('device', [raw], 'test -b /dev/xvda && echo data | dd of=/dev/xvda conv=fsync && sleep 1000');
    await until('the pod runs', () => runs('device'));
    const { metadata, status } = await read('device');
    const pv = (await volumeOf('three')).metadata.name;
    const link = join(root, 'pods', metadata.uid ?? '', 'volumeDevices', 'kubernetes.io~csi', pv);
    assert.match(readlinkSync(link), /volumeDevices\/publish\/pvc-[^/]+\/[^/]+$/);
    await until(
      'both events are there',
      async () =>
        (await eventsOf('device')).filter((event) => event.startsWith('SuccessfulMountVolume: MapVolume.MapPodDevice'))
          .length === 2,
    );
    const calls = called().length;
    await node.kubelet.kill('SIGKILL');
    await node.kubelet.start(node.healthzPort);
    await until(
      'it is published again',
      () =>
        called()
          .slice(calls)
          .filter((c) => c === 'NodePublishVolume').length >= 2,
    );
    assert.equal(
      (await read('device')).status?.containerStatuses?.[0]?.containerID,
      status?.containerStatuses?.[0]?.containerID,
    );
    await remove('device');
    await until('nothing of it is left', () => !existsSync(join(root, 'plugins/kubernetes.io/csi/volumeDevices', pv)));
    assert.equal(existsSync(link), false);
    assert.deepEqual(
      mountsBeneath(join(root, 'plugins')).filter((target) => target.includes(pv)),
      [],
    );
  });
});
