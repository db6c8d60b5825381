// Claims on a whole node: API server, kubelet process, containerd, and our CSI driver as a process of its own. The test
// stands in for provisioner, binder and attacher.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { attachmentName, uniqueNameOf } from '../../src/volumes/csi/csi-layout.ts';
import type { KubeObject } from '../../src/core/meta.ts';
import type { KubeEvent, Node as NodeObject } from '../../src/core/node.ts';
import type { Pod, Volume } from '../../src/core/pod.ts';
import {
  CSI_DRIVERS,
  CSI_NODES,
  EVENTS,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  VOLUME_ATTACHMENTS,
  type Resource,
} from '../../src/kube/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { AccessModeType, Controller } from '../../src/lib/csi-api/gen/csi.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
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
  const handles = new Map<string, string>();

  before(async () => {
    node = await startNode();
    root = join(node.dir, 'kubelet');
    const metadata = { name: 'default', namespace };
    const accounts: Resource<KubeObject> = { base: '/api/v1', plural: 'serviceaccounts' };
    await node.client
      .create(accounts, { namespace }, { apiVersion: 'v1', kind: 'ServiceAccount', metadata }, never)
      .catch(() => undefined);
    await make(CSI_DRIVERS, 'storage.k8s.io/v1', 'CSIDriver', DRIVER, {
      spec: {
        attachRequired: true,
        podInfoOnMount: true,
        fsGroupPolicy: 'File',
        volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      },
    });
    await startDriver();
  });
  after(async () => {
    for (const pod of (await node.client.list(PODS, { namespace }, never)).items) await remove(pod.metadata.name);
    await until('nothing is mounted', () => mountsBeneath(root).length === 0);
    driver.kill('SIGTERM');
    await node.stop();
  });

  async function startDriver(): Promise<void> {
    mkdirSync(join(node.dir, 'csi'), { recursive: true });
    const args = [
      `--node-id=${NODE_NAME}`,
      `--directory=${join(node.dir, 'csi', 'data')}`,
      `--endpoint=${join(node.dir, 'csi', 'csi.sock')}`,
      `--registry=${join(root, 'plugins_registry')}`,
      `--record=${join(node.dir, 'csi', 'calls.jsonl')}`,
      '--backing=directory',
    ];
    driver = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
    await until('CSINode names the driver', async () => {
      const { spec } = await node.client.get(CSI_NODES, { name: NODE_NAME }, never);
      return spec.drivers?.some(({ name, nodeID }) => name === DRIVER && nodeID === NODE_NAME) === true;
    });
  }

  const make = (
    resource: Resource<KubeObject>,
    apiVersion: string,
    kind: string,
    name: string,
    body: object,
    inside: { namespace?: string } = {},
  ): Promise<KubeObject> =>
    node.client.create(resource, inside, { apiVersion, kind, metadata: { name, ...inside }, ...body }, never);

  /** A volume of the driver, bound to a new claim and attached. */
  async function claim(name: string): Promise<void> {
    const channel = new GrpcChannel(systemClock, { target: { socketPath: join(node.dir, 'csi', 'csi.sock') } });
    const capability = {
      mount: { fsType: '', mountFlags: [], volumeMountGroup: '' },
      accessMode: { mode: AccessModeType.SINGLE_NODE_WRITER },
    };
    const { volume } = await channel.unary(
      Controller.createVolume,
      {
        name,
        capacityRange: { requiredBytes: 8 << 20, limitBytes: 0 },
        volumeCapabilities: [capability],
        parameters: {},
        secrets: {},
        mutableParameters: {},
      } as never,
      { signal: never, deadlineMs: 10_000 },
    );
    const handle = volume?.volumeId ?? '';
    handles.set(name, handle);
    await channel.unary(
      Controller.controllerPublishVolume,
      {
        volumeId: handle,
        nodeId: NODE_NAME,
        volumeCapability: capability,
        readonly: false,
        secrets: {},
        volumeContext: {},
      },
      { signal: never, deadlineMs: 10_000 },
    );
    channel.close();
    const size = { storage: '8Mi' };
    const made = await make(
      PERSISTENT_VOLUME_CLAIMS,
      'v1',
      'PersistentVolumeClaim',
      name,
      {
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: size },
          volumeName: `pv-${name}`,
          storageClassName: '',
        },
      },
      { namespace },
    );
    await make(PERSISTENT_VOLUMES, 'v1', 'PersistentVolume', `pv-${name}`, {
      spec: {
        capacity: size,
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        claimRef: { namespace, name, uid: made.metadata.uid },
        csi: { driver: DRIVER, volumeHandle: handle },
      },
    });
    const status = { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: size };
    await node.client.patch(PERSISTENT_VOLUME_CLAIMS, { namespace, name, subresource: 'status' }, { status }, never);
    await attach(name);
  }

  /** What the attacher and the attach controller do. */
  async function attach(name: string): Promise<void> {
    const handle = handles.get(name) ?? '';
    const attachment = attachmentName(handle, DRIVER, NODE_NAME);
    await make(VOLUME_ATTACHMENTS, 'storage.k8s.io/v1', 'VolumeAttachment', attachment, {
      spec: { attacher: DRIVER, nodeName: NODE_NAME, source: { persistentVolumeName: `pv-${name}` } },
    });
    await node.client.patch(
      VOLUME_ATTACHMENTS,
      { name: attachment, subresource: 'status' },
      { status: { attached: true } },
      never,
    );
    const volumesAttached = [...handles.values()].map((h) => ({ name: uniqueNameOf(DRIVER, h), devicePath: '' }));
    await node.client.patch(NODES, { name: NODE_NAME, subresource: 'status' }, { status: { volumesAttached } }, never);
  }

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
              volumeMounts: volumes.map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` })),
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
    readFileSync(join(node.dir, 'csi', 'calls.jsonl'), 'utf8')
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
    assert.deepEqual(await inUse(), [uniqueNameOf(DRIVER, handles.get('one') ?? '')]);
    await until('the file is there', () => existsSync(join(node.dir, 'csi', 'data', handles.get('one') ?? '')));
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
});
