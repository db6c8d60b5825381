// Local persistent volumes on a whole node: API server, kubelet process, containerd. The test stands in for the binder.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { KubeObject } from '../../src/core/meta.ts';
import type { KubeEvent } from '../../src/core/node.ts';
import type { Container, Pod, PodSpec } from '../../src/core/pod.ts';
import type { PersistentVolumeSpec } from '../../src/core/storage.ts';
import {
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

const namespace = 'default';
const never = new AbortController().signal;
const noLoops = existsSync('/dev/loop-control') ? false : 'this machine has no loop devices';

describe('local persistent volumes on a whole node', () => {
  let node: TestNode;
  let root: string;
  const disks: string[] = [];

  before(async () => {
    node = await startNode();
    root = join(node.dir, 'kubelet');
    await node.client
      .create(
        { base: '/api/v1', plural: 'serviceaccounts' } satisfies Resource<KubeObject>,
        { namespace },
        { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } },
        never,
      )
      .catch(() => undefined);
  });
  after(async () => {
    for (const pod of (await node.client.list(PODS, { namespace }, never)).items) await remove(pod.metadata.name);
    await until('nothing is mounted', () => mountsBeneath(root).length === 0);
    assert.ok(!execFileSync('losetup', ['-a'], { encoding: 'utf8' }).includes(root), 'no loop device is left');
    for (const disk of disks) execFileSync('losetup', ['-d', disk]);
    await node.stop();
  });

  function disk(): string {
    const file = join(node.dir, `disk-${disks.length}`);
    writeFileSync(file, '');
    truncateSync(file, 16 << 20);
    const device = execFileSync('losetup', ['-f', '--show', file], { encoding: 'utf8' }).trim();
    disks.push(device);
    return device;
  }

  /** A persistent volume and its claim, bound to each other. */
  async function bound(name: string, source: Partial<PersistentVolumeSpec>): Promise<void> {
    const { volumeMode = 'Filesystem' } = source;
    const [size, accessModes] = [{ storage: '8Mi' }, ['ReadWriteMany']];
    const claim = await node.client.create(
      PERSISTENT_VOLUME_CLAIMS,
      { namespace },
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name, namespace },
        spec: {
          accessModes,
          volumeMode,
          resources: { requests: size },
          volumeName: `pv-${name}`,
          storageClassName: '',
        },
      } as never,
      never,
    );
    await node.client.create(
      PERSISTENT_VOLUMES,
      {},
      {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: `pv-${name}` },
        spec: {
          capacity: size,
          accessModes,
          persistentVolumeReclaimPolicy: 'Retain',
          claimRef: { namespace, name, uid: claim.metadata.uid },
          nodeAffinity: onNode(NODE_NAME),
          ...source,
        },
      } as never,
      never,
    );
    const status = { phase: 'Bound', accessModes, capacity: size };
    await node.client.patch(PERSISTENT_VOLUME_CLAIMS, { namespace, name, subresource: 'status' }, { status }, never);
  }
  const onNode = (name: string): NonNullable<PersistentVolumeSpec['nodeAffinity']> => ({
    required: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [name] }] }],
    },
  });

  const create = (
    name: string,
    claimName: string,
    use: Partial<Container>,
    spec: Partial<PodSpec> = {},
  ): Promise<Pod> =>
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
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
          containers: [{ name: 'c', image: 'localhost/busybox:latest', imagePullPolicy: 'Never', ...use }],
          ...spec,
        },
      },
      never,
    );
  const shell = (script: string): string[] => ['sh', '-c', script];
  const mounted = (script: string): Partial<Container> => ({
    command: shell(script),
    volumeMounts: [{ name: 'data', mountPath: '/data' }],
  });
  const device = (script: string): Partial<Container> => ({
    command: shell(script),
    volumeDevices: [{ name: 'data', devicePath: '/dev/xvda' }],
  });
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
  const eventsOf = async (name: string): Promise<string[]> =>
    (await node.client.list(EVENTS, { namespace }, never)).items
      .filter((event: KubeEvent) => event.involvedObject.name === name)
      .map((event: KubeEvent) => `${event.reason}: ${event.message}`);

  it('a directory: a pod writes with its group, the next one reads', async () => {
    const directory = join(node.dir, 'data');
    mkdirSync(directory);
    await bound('dir', { local: { path: directory } });
    await create('writer', 'dir', mounted('echo kept > /data/f; sleep 1000'), { securityContext: { fsGroup: 2345 } });
    await until('the pod runs', () => runs('writer'));
    await until('it wrote', () => existsSync(join(directory, 'f')));
    assert.equal(statSync(directory).gid, 2345);
    await remove('writer');
    await until('nothing is mounted', () => mountsBeneath(root).length === 0);
    await create('reader', 'dir', mounted('test "$(cat /data/f)" = kept && sleep 1000'));
    await until('the second pod runs', () => runs('reader'));
    await remove('reader');
    assert.equal(readFileSync(join(directory, 'f'), 'utf8'), 'kept\n');
  });

  it('a disk: formatted once, shared by two pods, kept by a restart of the kubelet', { skip: noLoops }, async () => {
    await bound('disk', { local: { path: disk() } });
    await create('first', 'disk', mounted('echo kept > /data/f; sleep 1000'));
    await until('the first pod runs', () => runs('first'));
    await create('second', 'disk', mounted('while ! test "$(cat /data/f)" = kept; do sleep 1; done; sleep 1000'));
    await until('the second pod runs', () => runs('second'));
    const before = (await read('second')).status?.containerStatuses?.[0]?.containerID;
    await remove('first');
    await until('only the second pod has it', () => mountsBeneath(join(root, 'pods')).length === 1);
    await node.kubelet.kill('SIGKILL');
    await node.kubelet.start(node.healthzPort);
    await create('third', 'disk', mounted('test "$(cat /data/f)" = kept && sleep 1000'));
    await until('a third pod runs', () => runs('third'));
    assert.equal((await read('second')).status?.containerStatuses?.[0]?.containerID, before);
    for (const name of ['second', 'third']) await remove(name);
    await until('the disk is unmounted after the last', () => mountsBeneath(root).length === 0);
  });

  it(
    'a device: a pod writes to it, the next one reads, also across a restart of the kubelet',
    { skip: noLoops },
    async () => {
      const path = disk();
      await bound('block', { local: { path }, volumeMode: 'Block' });
      await create('raw', 'block', device('printf kept | dd of=/dev/xvda bs=512 count=1 conv=sync; sleep 1000'));
      await until('the pod runs', () => runs('raw'));
      const uid = (await read('raw')).metadata.uid ?? '';
      const map = join(root, 'plugins/kubernetes.io~local-volume/volumeDevices/pv-block');
      assert.deepEqual((await eventsOf('raw')).filter((event) => event.startsWith('SuccessfulMountVolume')).sort(), [
        `SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume "pv-block" globalMapPath "${map}"`,
        `SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume "pv-block" volumeMapPath "${join(root, 'pods', uid, 'volumeDevices/kubernetes.io~local-volume')}"`,
      ]);
      assert.match(execFileSync('losetup', ['-a'], { encoding: 'utf8' }), new RegExp(`${map}/${uid}`));
      await node.kubelet.kill('SIGKILL');
      await node.kubelet.start(node.healthzPort);
      await remove('raw');
      await until('the device is free', () => !existsSync(map));
      await create('raw-again', 'block', device('test "$(head -c 4 /dev/xvda)" = kept && sleep 1000'));
      await until('the second pod runs', () => runs('raw-again'));
      await remove('raw-again');
    },
  );

  it('volumes of another node, of another mode and of nowhere are told in upstream’s words', async () => {
    await bound('elsewhere', { local: { path: '/mnt' }, nodeAffinity: onNode('another') });
    await bound('nowhere', { local: { path: join(node.dir, 'nowhere') } });
    const rows: [string, string, Partial<Container>, string][] = [
      [
        'a',
        'elsewhere',
        mounted('true'),
        'FailedMount: MountVolume.NodeAffinity check failed for volume "pv-elsewhere" : no matching NodeSelectorTerms',
      ],
      [
        'b',
        'nowhere',
        mounted('true'),
        `FailedMount: MountVolume.NewMounter initialization failed for volume "pv-nowhere" : path "${join(node.dir, 'nowhere')}" does not exist`,
      ],
      ['c', 'nowhere', device('true'), 'volume data has volumeMode Filesystem, but is specified in volumeDevices'],
    ];
    for (const [name, claim, use] of rows) await create(name, claim, use);
    for (const [name, , , expected] of rows)
      await until(`${name} is told why`, async () => (await eventsOf(name)).some((event) => event.includes(expected)));
    for (const [name] of rows) await remove(name);
  });

  it('the node says nothing of volumes that nobody attaches', async () => {
    const { status } = await node.client.get(NODES, { name: NODE_NAME }, never);
    assert.deepEqual((status as { volumesInUse?: unknown }).volumesInUse ?? [], []);
    assert.deepEqual(await node.refusals(), []);
  });
});
