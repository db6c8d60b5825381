// A whole node for tests of claims: API server with the controllers of volumes, kubelet process, containerd and, where asked
// for, our CSI driver as a process of its own.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../src/core/meta.ts';
import type { KubeEvent } from '../../src/core/node.ts';
import type { Container, Pod, PodSpec, Volume } from '../../src/core/pod.ts';
import type { PersistentVolume, VolumeMode } from '../../src/core/storage.ts';
import {
  CSI_NODES,
  EVENTS,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  type Resource,
} from '../../src/kube/resources.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { NODE_NAME, startNode, type NodeOptions, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';
import { mountsBeneath } from './volumes-setup.ts';
import { removeFolder, temporaryFolder } from '../harness/temporary-folder.ts';

export const DRIVER = 'hostpath.csi.kubelet-dev';
export const namespace = 'default';
export const never = new AbortController().signal;
const MAIN = join(import.meta.dirname, '..', '..', 'src', 'devcluster', 'csi-hostpath', 'main.ts');
const ACCOUNTS: Resource<KubeObject> = { base: '/api/v1', plural: 'serviceaccounts' };

export type RecordedCall = { readonly call: string; readonly atMs: number };

export class ClaimsNode {
  readonly node: TestNode;
  /** Of the kubelet. */
  readonly root: string;
  /** Of the driver. */
  readonly dir: string;
  #driver: ChildProcess | undefined;

  constructor(node: TestNode, dir: string) {
    this.node = node;
    this.dir = dir;
    this.root = join(node.dir, 'kubelet');
  }

  static async start(options: NodeOptions & { readonly driver?: boolean } = {}): Promise<ClaimsNode> {
    const { driver = false, ...nodeOptions } = options;
    const dir = temporaryFolder('claims-node-');
    const csiDrivers = driver ? [{ name: DRIVER, endpoint: join(dir, 'csi.sock') }] : [];
    const scene = new ClaimsNode(await startNode({ ...nodeOptions, apiServer: { csiDrivers } }), dir);
    const metadata = { name: 'default', namespace };
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata };
    await scene.node.client.create(ACCOUNTS, { namespace }, account, never).catch(() => undefined);
    if (driver)
      await scene.startDriver().catch(async (err: unknown) => {
        await scene.stop();
        throw err;
      });
    return scene;
  }

  async startDriver(): Promise<void> {
    const args = [
      `--node-id=${NODE_NAME}`,
      `--directory=${join(this.dir, 'data')}`,
      `--endpoint=${join(this.dir, 'csi.sock')}`,
      `--registry=${join(this.root, 'plugins_registry')}`,
      `--record=${join(this.dir, 'calls.jsonl')}`,
      `--faults=${join(this.dir, 'faults.json')}`,
      '--backing=directory',
    ];
    this.#driver = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
    await until('CSINode names the driver', async () => {
      const { spec } = await this.node.client.get(CSI_NODES, { name: NODE_NAME }, never);
      return spec.drivers?.some(({ name, nodeID }) => name === DRIVER && nodeID === NODE_NAME) === true;
    });
  }

  async stopDriver(): Promise<void> {
    const driver = this.#driver;
    if (driver === undefined || driver.exitCode !== null || driver.signalCode !== null) return;
    const gone = once(driver, 'exit');
    driver.kill('SIGTERM');
    await gone;
  }

  /** What the pods had mounted must go with them. */
  async removePods(): Promise<void> {
    for (const pod of (await this.node.client.list(PODS, { namespace }, never)).items)
      await this.remove(pod.metadata.name);
    await untilSeen(
      'nothing is mounted',
      () => mountsBeneath(this.root),
      (seen) => seen.length === 0,
    );
    const loops = (): string[] => [...this.loops(this.root), ...this.loops(this.dir)];
    await untilSeen('no loop device is left', loops, (seen) => seen.length === 0);
  }

  async stop(): Promise<void> {
    await this.removePods();
    await this.stopDriver();
    await this.node.stop();
    removeFolder(this.dir);
  }

  /** A claim that the provisioner is to make a volume for. */
  claim(name: string, volumeMode: VolumeMode = 'Filesystem'): Promise<KubeObject> {
    const spec = { accessModes: ['ReadWriteOnce'], volumeMode, resources: { requests: { storage: '8Mi' } } };
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name, namespace }, spec };
    return this.node.client.create(PERSISTENT_VOLUME_CLAIMS, { namespace }, claim, never);
  }

  async volumeOf(name: string): Promise<PersistentVolume> {
    const { spec } = await this.node.client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, never);
    return this.node.client.get(PERSISTENT_VOLUMES, { name: spec?.volumeName ?? '' }, never);
  }

  /** One container that has every volume at `/<name>`, those called `raw` as the device `/dev/xvda`. */
  create(
    name: string,
    volumes: readonly Volume[],
    script: string,
    more: { readonly spec?: Partial<PodSpec>; readonly container?: Partial<Container> } = {},
  ): Promise<Pod> {
    const container: Container = {
      name: 'c',
      image: BUSYBOX_IMAGE,
      imagePullPolicy: 'Never',
      command: ['sh', '-c', script],
      volumeMounts: volumes.filter((v) => v.name !== 'raw').map((v) => ({ name: v.name, mountPath: `/${v.name}` })),
      volumeDevices: volumes.filter((v) => v.name === 'raw').map((v) => ({ name: v.name, devicePath: '/dev/xvda' })),
      ...more.container,
    };
    const spec: PodSpec = {
      nodeName: NODE_NAME,
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      volumes,
      containers: [container],
      ...more.spec,
    };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec };
    return this.node.client.create(PODS, { namespace }, pod, never);
  }

  read(name: string): Promise<Pod> {
    return this.node.client.get(PODS, { namespace, name }, never);
  }

  async runs(name: string): Promise<boolean> {
    return (await this.read(name)).status?.containerStatuses?.[0]?.state.running !== undefined;
  }

  async remove(name: string): Promise<void> {
    const { client } = this.node;
    await client.delete(PODS, { namespace, name }, { gracePeriodSeconds: 0 }, never).catch(() => undefined);
    await until(`${name} is gone`, () =>
      this.read(name).then(
        () => false,
        () => true,
      ),
    );
  }

  async inUse(): Promise<readonly string[]> {
    return (await this.node.client.get(NODES, { name: NODE_NAME }, never)).status?.volumesInUse ?? [];
  }

  async eventsOf(name: string): Promise<string[]> {
    return (await this.node.client.list(EVENTS, { namespace }, never)).items
      .filter((event: KubeEvent) => event.involvedObject.name === name)
      .map((event: KubeEvent) => `${event.reason}: ${event.message}`);
  }

  /** Calls of the node service that change something, in order. */
  called(): string[] {
    return readFileSync(join(this.dir, 'calls.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as RecordedCall).call)
      .filter((call) => /^Node(Stage|Publish|Unstage|Unpublish)/.test(call));
  }

  /** Files below a directory that are behind a loop device. */
  loops(directory: string): string[] {
    return readdirSync('/sys/block').flatMap((name) => {
      if (!name.startsWith('loop')) return [];
      try {
        const file = readFileSync(join('/sys/block', name, 'loop', 'backing_file'), 'utf8').trim();
        return file.startsWith(`${directory}/`) ? [file] : [];
      } catch {
        return []; // attached to nothing
      }
    });
  }
}

export const claimed = (claimName: string, name = 'data'): Volume => ({ name, persistentVolumeClaim: { claimName } });
