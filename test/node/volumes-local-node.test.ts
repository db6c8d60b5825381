// Local persistent volumes on a whole node: API server, kubelet process, containerd. The test stands in for the binder.
// runs: gate
// shows: volumes: local persistent volumes
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { PersistentVolumeSpec } from '../../src/core/storage.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../src/kube/resources.ts';
import { NODE_NAME, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';
import { claimed, ClaimsNode, namespace, never } from './claims-node.ts';
import { mountsBeneath } from './volumes-setup.ts';

const noLoops = existsSync('/dev/loop-control') ? false : 'this machine has no loop devices';

describe('local persistent volumes on a whole node', () => {
  let scene: ClaimsNode;
  let node: TestNode;
  let root: string;
  const disks: string[] = [];

  before(async () => {
    scene = await ClaimsNode.start();
    ({ node, root } = scene);
  });
  after(async () => {
    await scene.removePods();
    for (const disk of disks) execFileSync('losetup', ['-d', disk]);
    await scene.stop();
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

  it('a directory: a pod writes with its group, the next one reads', async () => {
    const directory = join(node.dir, 'data');
    mkdirSync(directory);
    await bound('dir', { local: { path: directory } });
    await scene.create('writer', [claimed('dir')], 'echo kept > /data/f; sleep 1000', {
      spec: { securityContext: { fsGroup: 2345 } },
    });
    await until('the pod runs', () => scene.runs('writer'));
    await until('it wrote', () => existsSync(join(directory, 'f')));
    assert.equal(statSync(directory).gid, 2345);
    await scene.remove('writer');
    await untilSeen(
      'nothing is mounted',
      () => mountsBeneath(root),
      (seen) => seen.length === 0,
    );
    await scene.create('reader', [claimed('dir')], 'test "$(cat /data/f)" = kept && sleep 1000');
    await until('the second pod runs', () => scene.runs('reader'));
    await scene.remove('reader');
    assert.equal(readFileSync(join(directory, 'f'), 'utf8'), 'kept\n');
  });

  it('a disk: formatted once, shared by two pods, kept by a restart of the kubelet', { skip: noLoops }, async () => {
    await bound('disk', { local: { path: disk() } });
    await scene.create('first', [claimed('disk')], 'echo kept > /data/f; sleep 1000');
    await until('the first pod runs', () => scene.runs('first'));
    await scene.create(
      'second',
      [claimed('disk')],
      'while ! test "$(cat /data/f)" = kept; do sleep 1; done; sleep 1000',
    );
    await until('the second pod runs', () => scene.runs('second'));
    const before = (await scene.read('second')).status?.containerStatuses?.[0]?.containerID;
    await scene.remove('first');
    await untilSeen(
      'only the second pod has it',
      () => mountsBeneath(join(root, 'pods')),
      (seen) => seen.length === 1,
    );
    await node.kubelet.kill('SIGKILL');
    await node.kubelet.start(node.healthzPort);
    await scene.create('third', [claimed('disk')], 'test "$(cat /data/f)" = kept && sleep 1000');
    await until('a third pod runs', () => scene.runs('third'));
    assert.equal((await scene.read('second')).status?.containerStatuses?.[0]?.containerID, before);
    for (const name of ['second', 'third']) await scene.remove(name);
    await untilSeen(
      'the disk is unmounted after the last',
      () => mountsBeneath(root),
      (seen) => seen.length === 0,
    );
  });

  it(
    'a device: a pod writes to it, the next one reads, also across a restart of the kubelet',
    { skip: noLoops },
    async () => {
      const path = disk();
      await bound('block', { local: { path }, volumeMode: 'Block' });
      await scene.create(
        'raw',
        [claimed('block', 'raw')],
        'printf kept | dd of=/dev/xvda bs=512 count=1 conv=sync; sleep 1000',
      );
      await until('the pod runs', () => scene.runs('raw'));
      const uid = (await scene.read('raw')).metadata.uid ?? '';
      const map = join(root, 'plugins/kubernetes.io~local-volume/volumeDevices/pv-block');
      assert.deepEqual(
        (await scene.eventsOf('raw')).filter((event) => event.startsWith('SuccessfulMountVolume')).sort(),
        [
          `SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume "pv-block" globalMapPath "${map}"`,
          `SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume "pv-block" volumeMapPath "${join(root, 'pods', uid, 'volumeDevices/kubernetes.io~local-volume')}"`,
        ],
      );
      assert.match(execFileSync('losetup', ['-a'], { encoding: 'utf8' }), new RegExp(`${map}/${uid}`));
      await node.kubelet.kill('SIGKILL');
      await node.kubelet.start(node.healthzPort);
      await scene.remove('raw');
      await until('the device is free', () => !existsSync(map));
      await scene.create('raw-again', [claimed('block', 'raw')], 'test "$(head -c 4 /dev/xvda)" = kept && sleep 1000');
      await until('the second pod runs', () => scene.runs('raw-again'));
      await scene.remove('raw-again');
    },
  );

  it('volumes of another node, of another mode and of nowhere are told in upstream’s words', async () => {
    await bound('elsewhere', { local: { path: '/mnt' }, nodeAffinity: onNode('another') });
    await bound('nowhere', { local: { path: join(node.dir, 'nowhere') } });
    const rows: [string, string, 'data' | 'raw', string][] = [
      [
        'a',
        'elsewhere',
        'data',
        'FailedMount: MountVolume.NodeAffinity check failed for volume "pv-elsewhere" : no matching NodeSelectorTerms',
      ],
      [
        'b',
        'nowhere',
        'data',
        `FailedMount: MountVolume.NewMounter initialization failed for volume "pv-nowhere" : path "${join(node.dir, 'nowhere')}" does not exist`,
      ],
      ['c', 'nowhere', 'raw', 'volume raw has volumeMode Filesystem, but is specified in volumeDevices'],
    ];
    for (const [name, claim, use] of rows) await scene.create(name, [claimed(claim, use)], 'true');
    for (const [name, , , expected] of rows)
      await untilSeen(
        `${name} is told why`,
        () => scene.eventsOf(name),
        (seen) => seen.some((event) => event.includes(expected)),
      );
    for (const [name] of rows) await scene.remove(name);
  });

  it('the node says nothing of volumes that nobody attaches', async () => {
    const { status } = await node.client.get(NODES, { name: NODE_NAME }, never);
    assert.deepEqual((status as { volumesInUse?: unknown }).volumesInUse ?? [], []);
    assert.deepEqual(await node.refusals(), []);
  });
});
