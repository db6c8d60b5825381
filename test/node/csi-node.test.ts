// Claims on a whole node, with our CSI driver as a process of its own.
// runs: gate
// shows: volumes: persistent claims, generic ephemeral volumes, CSI with filesystems and block devices, expansion
import assert from 'node:assert/strict';
import { existsSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { uniqueNameOf } from '../../src/volumes/csi/csi-layout.ts';
import type { Volume } from '../../src/core/pod.ts';
import { CSI_NODES, PERSISTENT_VOLUME_CLAIMS, PODS } from '../../src/kube/resources.ts';
import { NODE_NAME, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';
import { claimed, ClaimsNode, DRIVER, namespace, never } from './claims-node.ts';
import { mountsBeneath } from './volumes-setup.ts';

describe('claims on a whole node', () => {
  let scene: ClaimsNode;
  let node: TestNode;
  let root: string;

  before(async () => {
    scene = await ClaimsNode.start({ driver: true });
    ({ node, root } = scene);
  });
  after(() => scene?.stop());

  it('a pod writes to its claim, the next one reads it', async () => {
    await scene.claim('one');
    await scene.create(
      'writer',
      [claimed('one'), { name: 'scratch', csi: { driver: DRIVER } }],
      'echo kept > /data/f; sleep 1000',
    );
    await until('the pod runs', () => scene.runs('writer'));
    const handle = (await scene.volumeOf('one')).spec.csi?.volumeHandle ?? '';
    assert.deepEqual(await scene.inUse(), [uniqueNameOf(DRIVER, handle)]);
    await scene.remove('writer');
    await untilSeen(
      'nothing is in use',
      () => scene.inUse(),
      (seen) => seen.length === 0,
    );
    assert.deepEqual(mountsBeneath(root), []);
    await scene.create('reader', [claimed('one')], 'test "$(cat /data/f)" = kept && sleep 1000');
    await until('the second pod runs', () => scene.runs('reader'));
    assert.deepEqual(await node.refusals(), []);
  });

  it('a restart of the kubelet leaves a running pod alone', async () => {
    const before = (await scene.read('reader')).status?.containerStatuses?.[0];
    const calls = scene.called().length;
    await node.kubelet.kill('SIGKILL');
    await node.kubelet.start(node.healthzPort);
    const again = (): string => scene.called().slice(calls).join();
    await untilSeen('it is published again', again, (seen) => seen === 'NodeStageVolume,NodePublishVolume');
    const after = (await scene.read('reader')).status?.containerStatuses?.[0];
    assert.equal(after?.containerID, before?.containerID);
    assert.equal(after?.restartCount, 0);
    await scene.remove('reader');
    await untilSeen('it is taken down', again, (seen) => seen.endsWith(',NodeUnpublishVolume,NodeUnstageVolume'));
  });

  it('a claim that is missing or not bound is told, and the pod starts once it is', async () => {
    await scene.create('early', [claimed('two')], 'sleep 1000');
    const expected =
      'FailedMount: Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: error processing PVC default/two: failed to fetch PVC from API server: persistentvolumeclaims "two" not found';
    await untilSeen(
      'the event is there',
      () => scene.eventsOf('early'),
      (seen) => seen.includes(expected),
    );
    await scene.claim('two');
    await until('the pod runs', () => scene.runs('early'));
  });

  it('a driver that goes is forgotten, and serves again when it is back', async () => {
    await scene.stopDriver();
    await until('CSINode forgets the driver', async () => {
      const { spec } = await node.client.get(CSI_NODES, { name: NODE_NAME }, never);
      return (spec.drivers ?? []).length === 0;
    });
    await scene.create('late', [{ name: 'scratch', csi: { driver: DRIVER } }], 'sleep 1000');
    const expected = `FailedMount: MountVolume.SetUp failed for volume "scratch" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name ${DRIVER} not found in the list of registered CSI drivers`;
    await untilSeen(
      'the event is there',
      () => scene.eventsOf('late'),
      (seen) => seen.includes(expected),
    );
    await scene.startDriver();
    await until('the pod runs', () => scene.runs('late'));
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
    await scene.remove('early');
    await scene.create('grown', [claimed('two')], 'sleep 1000');
    await until('the pod runs', () => scene.runs('grown'));
    const { status: after } = await node.client.get(PERSISTENT_VOLUME_CLAIMS, where, never);
    assert.deepEqual([after?.capacity, after?.allocatedResourceStatuses], [size, undefined]);
    const pv = (await scene.volumeOf('two')).metadata.name;
    const told = `FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "${pv}" n1`;
    await untilSeen(
      'pod and claim are told',
      () => Promise.all([scene.eventsOf('grown'), scene.eventsOf('two')]),
      (seen) => seen.every((events) => events.includes(told)),
    );
    assert.deepEqual(await node.refusals(), []);
  });

  it('a claim that grows is grown under a running pod, with its next sync', async () => {
    const size = { storage: '24Mi' };
    const where = { namespace, name: 'two' };
    await node.client.patch(PERSISTENT_VOLUME_CLAIMS, where, { spec: { resources: { requests: size } } }, never);
    await until('the node is asked to', async () => {
      const { status } = await node.client.get(PERSISTENT_VOLUME_CLAIMS, where, never);
      return status?.allocatedResourceStatuses?.['storage'] === 'NodeResizePending';
    });
    const labels = { changed: 'yes' };
    await node.client.patch(PODS, { namespace, name: 'grown' }, { metadata: { labels } }, never);
    await until('the claim has its size', async () => {
      const { status } = await node.client.get(PERSISTENT_VOLUME_CLAIMS, where, never);
      return status?.capacity?.['storage'] === size.storage && status.allocatedResourceStatuses === undefined;
    });
  });

  it('a claim in block mode is a device in the container, also after a restart of the kubelet', async () => {
    await scene.claim('three', 'Block');
    const raw: Volume = { name: 'raw', persistentVolumeClaim: { claimName: 'three' } };
    await scene.create('device', [raw], 'test -b /dev/xvda && echo data | dd of=/dev/xvda conv=fsync && sleep 1000');
    await until('the pod runs', () => scene.runs('device'));
    const { metadata, status } = await scene.read('device');
    const pv = (await scene.volumeOf('three')).metadata.name;
    const link = join(root, 'pods', metadata.uid ?? '', 'volumeDevices', 'kubernetes.io~csi', pv);
    assert.match(readlinkSync(link), /volumeDevices\/publish\/pvc-[^/]+\/[^/]+$/);
    await untilSeen(
      'both events are there',
      async () =>
        (await scene.eventsOf('device')).filter((event) =>
          event.startsWith('SuccessfulMountVolume: MapVolume.MapPodDevice'),
        ),
      (seen) => seen.length === 2,
    );
    const calls = scene.called().length;
    await node.kubelet.kill('SIGKILL');
    await node.kubelet.start(node.healthzPort);
    await untilSeen(
      'it is published again',
      () =>
        scene
          .called()
          .slice(calls)
          .filter((c) => c === 'NodePublishVolume'),
      (seen) => seen.length >= 2,
    );
    assert.equal(
      (await scene.read('device')).status?.containerStatuses?.[0]?.containerID,
      status?.containerStatuses?.[0]?.containerID,
    );
    await scene.remove('device');
    await until('nothing of it is left', () => !existsSync(join(root, 'plugins/kubernetes.io/csi/volumeDevices', pv)));
    assert.equal(existsSync(link), false);
    assert.deepEqual(
      mountsBeneath(join(root, 'plugins')).filter((target) => target.includes(pv)),
      [],
    );
  });
});
