// A node changes hands while its pods run: what the Go kubelet leaves (containers with its labels, directories, mounts, state
// files) is taken over, nothing is started or stopped, deletions clear it away, and what is written it could read again.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { formatCpuSet, tryParseCpuSet } from '../../src/core/cpuset.ts';
import type { Pod } from '../../src/core/pod.ts';
import { ContainerState, type PodSandboxConfig } from '../../src/cri/gen/cri.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { NODES, PODS, RESOURCE_CLAIMS, type ResourceClaim } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { FakeCri } from '../fakes/fake-cri.ts';
import { FakeDraDriver } from '../fakes/fake-dra-driver.ts';
import { layOut, runAsRecorded, type GoNode } from '../golden/go-node.ts';
import {
  claimState,
  cpuManagerState,
  deviceState,
  goReads,
  MEMORY_MANAGER_STATE,
  resourceState,
} from '../golden/go-state.ts';
import { createGoldenNamespace } from '../golden/namespace.ts';
import { recording, type Recording } from '../golden/recording.ts';
import { startTestApiServer, type TestApiServer } from '../harness/api-server.ts';
import { connectClient } from '../harness/connect-client.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { KubeletProcess, NODE_NAME } from '../harness/node.ts';
import { makeNodeFolder, removeNodeFolder } from '../harness/node-folder.ts';
import { freePort } from '../harness/ports.ts';
import { until, untilSeen } from '../harness/until.ts';

const never = new AbortController().signal;
const namespace = 'golden';
const LISTINGS = join(import.meta.dirname, 'golden');
const RESOURCE = 'example.com/a';
const DRIVER = 'gpu.example.com';
/** Scenario by pod; some have more to it than was recorded: a processor, a device, a claim. */
const RUNNING: Readonly<Record<string, string>> = {
  simple: 'simple',
  pinned: 'simple',
  volumes: 'volumes',
  security: 'security',
  sidecar: 'sidecar',
  init: 'init',
  hostns: 'hostns',
  'names-dns': 'names-dns',
  device: 'besteffort',
  claim: 'besteffort',
};
const DISTURBS =
  /^(RunPodSandbox|CreateContainer|StartContainer|StopContainer|StopPodSandbox|RemoveContainer|RemovePodSandbox)$/;

/** The second processor is a container's own; the others are shared. */
const ONLINE = tryParseCpuSet(readFileSync('/sys/devices/system/cpu/online', 'utf8').trim()) ?? new Set([0]);
const OWN = [...ONLINE][1] ?? 1;
const SHARED = formatCpuSet(new Set([...ONLINE].filter((cpu) => cpu !== OWN)));

type Changed = Record<'containers' | 'initContainers', { resources?: object; startupProbe?: object }[]> & {
  resourceClaims?: object[];
};

class Scene implements GoNode {
  readonly cri = new FakeCri();
  readonly undo: (() => Promise<unknown>)[] = [];
  readonly pods = new Map<string, Pod>();
  readonly dir: string;
  readonly rootDir: string;
  readonly podLogsDir: string;
  readonly cgroupRoot = `/kts-handover-${process.pid}`;
  readonly driver: FakeDraDriver;
  api!: TestApiServer;
  client!: KubeClient;
  kubelet!: KubeletProcess;
  healthzPort = 0;
  claimUid = '';

  constructor(dir: string) {
    this.dir = dir;
    this.rootDir = join(dir, 'kubelet');
    this.podLogsDir = join(dir, 'pod-logs');
    this.driver = new FakeDraDriver({ directory: join(this.rootDir, 'plugins', DRIVER), driver: DRIVER });
  }

  uid(name: string): string {
    return this.pods.get(name)?.metadata.uid ?? '';
  }

  now(name: string): Promise<Pod> {
    return this.client.get(PODS, { namespace, name }, never);
  }

  state(file: string): string {
    return readFileSync(join(this.rootDir, file), 'utf8');
  }

  /** Containers that run, by the name of pod and container. */
  running(): ReadonlyMap<string, string> {
    const all = [...this.cri.state.containers.values()].filter((c) => c.state === ContainerState.CONTAINER_RUNNING);
    return new Map(all.map((c) => [`${c.sandbox.config.metadata?.name}/${c.config.metadata?.name}`, c.id]));
  }

  async open(): Promise<void> {
    this.undo.push(() => removeNodeFolder(this.dir));
    const cgroups = await openCgroups(systemClock, 'cgroupfs');
    await cgroups.create(this.cgroupRoot, {}, never);
    this.undo.push(() => cgroups.destroy(this.cgroupRoot, never));
    this.cri.state.addImage(BUSYBOX_IMAGE);
    await this.cri.start();
    this.undo.push(() => this.cri.stop());
    this.api = await startTestApiServer(join(this.dir, 'api'));
    this.undo.push(() => this.api.stop());
    this.client = await connectClient(this.api.adminKubeconfigPath);
    // Pods of a node that nobody registered are collected; and what fits is read from it.
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE_NAME } };
    const made = await this.client.create(NODES, {}, node, never);
    const room = { cpu: String(ONLINE.size), memory: '1Gi', pods: '110', [RESOURCE]: '2' };
    const status = { ...made.status, capacity: room, allocatable: { ...room, cpu: `${ONLINE.size * 1000 - 500}m` } };
    await this.client.replace(NODES, { name: NODE_NAME, subresource: 'status' }, { ...made, status }, never);
    await createGoldenNamespace(this);
    await this.leaveAsGoKubelet();
    await this.configure();
    mkdirSync(join(this.rootDir, 'plugins', DRIVER), { recursive: true });
    mkdirSync(join(this.rootDir, 'plugins_registry'), { recursive: true });
    await this.driver.listen();
    await this.driver.register(join(this.rootDir, 'plugins_registry'));
    this.undo.push(() => this.driver.stop());
  }

  async leaveAsGoKubelet(): Promise<void> {
    for (const [name, scenario] of Object.entries(RUNNING)) {
      const pod = await this.createPod(name, recording(scenario).pods.start);
      this.pods.set(name, pod);
      await runAsRecorded(this, renamed(recording(scenario), name), pod);
      const listing = join(LISTINGS, `volumes-${scenario}-files.txt`);
      const podDir = join(this.rootDir, 'pods', pod.metadata.uid ?? '');
      if (existsSync(listing)) layOut(podDir, listing);
      else mkdirSync(join(podDir, 'containers'), { recursive: true });
    }
    await this.makeCgroups();
    await this.allocateClaim();
    this.writeStates();
  }

  /** A pod whose cgroup is gone is started again. */
  async makeCgroups(): Promise<void> {
    const cgroups = await openCgroups(systemClock, 'cgroupfs');
    const made = [...this.cri.state.sandboxes.values()].map((s) => s.config.linux?.cgroupParent ?? '');
    // Guaranteed, unlike the pod that was recorded.
    const paths = [...made, `${this.cgroupRoot}/kubepods/pod${this.uid('pinned')}`];
    const tiers = ['', '/burstable', '/besteffort'].map((tier) => `${this.cgroupRoot}/kubepods${tier}`);
    for (const path of [...tiers, ...paths]) await cgroups.create(path, {}, never);
  }

  async createPod(name: string, recorded: Pod): Promise<Pod> {
    const spec = structuredClone(recorded.spec) as unknown as Changed;
    const [first] = spec.containers;
    // The runtime in memory has no programs for probes.
    for (const container of [...(spec.initContainers ?? []), ...spec.containers]) delete container.startupProbe;
    const whole = { cpu: '1', memory: '64Mi' };
    if (name === 'pinned' && first) first.resources = { limits: whole, requests: whole };
    if (name === 'device' && first) first.resources = { limits: { [RESOURCE]: '1' }, requests: { [RESOURCE]: '1' } };
    if (name === 'claim' && first) {
      first.resources = { claims: [{ name: 'gpu' }] };
      spec.resourceClaims = [{ name: 'gpu', resourceClaimName: 'one' }];
    }
    const metadata = { name, namespace };
    return this.client.create(
      PODS,
      { namespace },
      { apiVersion: 'v1', kind: 'Pod', metadata, spec } as unknown as Pod,
      never,
    );
  }

  /** As the scheduler left it. */
  async allocateClaim(): Promise<void> {
    const spec = { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu' } }] } };
    const made = {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceClaim',
      metadata: { name: 'one', namespace },
      spec,
    };
    const claim = await this.client.create(RESOURCE_CLAIMS, { namespace }, made as ResourceClaim, never);
    const results = [{ request: 'gpu', driver: DRIVER, pool: 'pool', device: 'one' }];
    const status = {
      allocation: { devices: { results } },
      reservedFor: [{ resource: 'pods', name: 'claim', uid: this.uid('claim') }],
    };
    const where = { namespace, name: 'one', subresource: 'status' };
    await this.client.replace(RESOURCE_CLAIMS, where, { ...claim, status }, never);
    this.claimUid = claim.metadata.uid ?? '';
  }

  writeStates(): void {
    const states = {
      cpu_manager_state: cpuManagerState(SHARED, { [this.uid('pinned')]: { web: String(OWN) } }),
      memory_manager_state: MEMORY_MANAGER_STATE,
      'device-plugins/kubelet_internal_checkpoint': deviceState(
        [
          {
            PodUID: this.uid('device'),
            ContainerName: 'a',
            ResourceName: RESOURCE,
            DeviceIDs: { '-1': ['d0'] },
            AllocResp: '',
          },
        ],
        { [RESOURCE]: ['d0', 'd1'] },
      ),
      dra_manager_state: claimState([
        {
          ClaimUID: this.claimUid,
          ClaimName: 'one',
          Namespace: namespace,
          PodUIDs: { [this.uid('claim')]: {} },
          DriverState: {
            [DRIVER]: {
              Devices: [
                {
                  PoolName: 'pool',
                  DeviceName: 'one',
                  ShareID: null,
                  RequestNames: ['gpu'],
                  CDIDeviceIDs: ['v/c=one'],
                },
              ],
            },
          },
        },
      ]),
      allocated_pods_state: resourceState(this.granted()),
      actuated_pods_state: resourceState(this.granted()),
    };
    mkdirSync(join(this.rootDir, 'device-plugins'), { recursive: true });
    for (const [file, text] of Object.entries(states)) writeFileSync(join(this.rootDir, file), text);
  }

  granted(): Record<string, object> {
    const own = [...this.pods.values()].map(({ metadata, spec }): [string, object] => {
      const all = [...(spec.initContainers ?? []), ...spec.containers];
      const sized = all.map((c): [string, object] => [c.name, c.resources ?? {}]).sort(([a], [b]) => (a < b ? -1 : 1));
      return [metadata.uid ?? '', { ContainerResources: Object.fromEntries(sized), PodLevelResources: null }];
    });
    return Object.fromEntries(own.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  async configure(): Promise<void> {
    this.healthzPort = await freePort();
    writeFileSync(
      join(this.dir, 'config.yaml'),
      `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: ${this.cri.endpoint}
cpuManagerPolicy: static
systemReserved: {cpu: 500m} # of the first processor: what the others ask for fits into its rest
failCgroupV1: false
failSwapOn: false
cgroupRoot: ${this.cgroupRoot}
podLogsDir: ${this.podLogsDir}
volumePluginDir: ${this.dir}/volume-plugins
address: 127.0.0.1
port: ${await freePort()}
healthzPort: ${this.healthzPort}
makeIPTablesUtilChains: false
featureGates: {KubeletInUserNamespace: true} # leaves this machine's kernel settings alone
evictionHard: {memory.available: 1Mi, nodefs.available: 1%, imagefs.available: 1%}
`,
    );
    writeFileSync(join(this.dir, 'kubeconfig'), this.api.nodeKubeconfig(NODE_NAME), { mode: 0o600 });
    this.kubelet = new KubeletProcess(this.dir, ['--kubeconfig', join(this.dir, 'kubeconfig')]);
    this.undo.push(() => this.kubelet.kill('SIGTERM'));
  }

  async close(): Promise<void> {
    for (const step of this.undo.splice(0).reverse()) await step();
  }
}

/** The same calls for a pod of another name. */
const renamed = (scenario: Recording, name: string): Recording =>
  JSON.parse(JSON.stringify(scenario), (key, value: unknown) => {
    if (key === 'io.kubernetes.pod.name') return name;
    const isPod = typeof value === 'object' && value !== null && 'uid' in value && 'namespace' in value;
    return key === 'metadata' && isPod ? { ...value, name } : value;
  }) as Recording;

const skip = ONLINE.size < 2 && "needs two processors: one of them is a container's own";

describe('a node that the Go kubelet had', { skip }, () => {
  let scene: Scene;
  let before_: ReadonlyMap<string, string>;
  const names = Object.keys(RUNNING);

  before(async () => {
    scene = new Scene(await makeNodeFolder());
    await scene.open();
    before_ = scene.running();
    scene.cri.calls.length = 0;
    await scene.kubelet.start(scene.healthzPort);
  });
  after(() => scene?.close());

  const log = (): string => readFileSync(join(scene.dir, 'kubelet.log'), 'utf8');
  const isNew = (s: { readonly config: PodSandboxConfig }): boolean => s.config.metadata?.name === 'newcomer';
  const disturbances = (): readonly string[] =>
    scene.cri.calls.map((c) => c.verb).filter((verb) => DISTURBS.test(verb));

  it('has all its pods told as running, in the containers they had', async () => {
    for (const name of names) {
      const told = await until(`${name} is told`, async () => {
        const { status } = await scene.now(name);
        if (status?.phase === 'Failed') return `${status.reason}: ${status.message}`; // nothing more will come
        const ids = (status?.containerStatuses ?? []).map((c) => [
          `${name}/${c.name}`,
          c.state.running === undefined ? JSON.stringify(c.state) : c.containerID?.split('//')[1],
        ]);
        if (status?.phase !== 'Running' || ids.length === 0) return false;
        const want = [...before_].filter(([key]) => ids.some(([k]) => k === key));
        assert.deepEqual(Object.fromEntries(ids), Object.fromEntries(want));
        return 'running';
      }).catch((err: unknown) => assert.fail(`${String(err)}\n${log().slice(-4000)}`));
      assert.equal(told, 'running', name);
    }
  });

  it('has nothing started, stopped or removed', async () => {
    // When a newcomer runs, the others have had their turn.
    const { spec } = recording('besteffort').pods.start;
    const newcomer = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'newcomer', namespace }, spec } as Pod;
    await scene.client.create(PODS, { namespace }, newcomer, never);
    await untilSeen(
      'a newcomer runs',
      async () => (await scene.now('newcomer')).status?.phase,
      (seen) => seen === 'Running',
    );
    const own = new Set([...scene.cri.state.sandboxes.values()].filter(isNew).map((s) => s.id));
    const ours = [...scene.cri.state.containers.values()].filter((c) => own.has(c.sandbox.id));
    assert.equal(disturbances().length, own.size + 2 * ours.length, disturbances().join());
    await scene.client.delete(PODS, { namespace, name: 'newcomer' }, {}, never);
    await untilSeen(
      'the newcomer has left',
      () => scene.running().size,
      (seen) => seen === before_.size,
    );
    assert.deepEqual(scene.running(), before_);
    for (const name of names)
      assert.deepEqual(
        (await scene.now(name)).status?.containerStatuses?.map((c) => c.restartCount).some(Boolean),
        false,
        name,
      );
  });

  it('keeps processors, devices, claims and grants where they were', () => {
    assert.deepEqual(goReads.cpus(scene.state('cpu_manager_state')).entries, {
      [scene.uid('pinned')]: { web: String(OWN) },
    });
    goReads.memory(scene.state('memory_manager_state'));
    const devices = goReads.devices(scene.state('device-plugins/kubelet_internal_checkpoint'));
    assert.deepEqual(
      devices.map((d) => [d.PodUID, d.DeviceIDs]),
      [[scene.uid('device'), { '-1': ['d0'] }]],
    );
    assert.equal(goReads.claims(scene.state('dra_manager_state')).length, 1);
    for (const file of ['allocated_pods_state', 'actuated_pods_state']) {
      const read = goReads.resources(scene.state(file));
      for (const [uid, resources] of Object.entries(scene.granted())) assert.deepEqual(read[uid], resources, file);
    }
  });

  it('clears away what is deleted', async () => {
    for (const name of names) await scene.client.delete(PODS, { namespace, name }, {}, never);
    const gone = (name: string): Promise<boolean> =>
      scene.now(name).then(
        () => false,
        () => true,
      );
    for (const name of names) await until(`${name} is gone`, () => gone(name), 120_000);
    // Those without a grace period of their own leave the API server at once, and their containers two seconds later.
    await untilSeen(
      'nothing runs any more',
      () => scene.running().size,
      (seen) => seen === 0,
    );
    await untilSeen(
      'directories are gone',
      () => readdirSync(join(scene.rootDir, 'pods')),
      (seen) => seen.length === 0,
    );
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
    assert.deepEqual(
      mounts.filter((line) => line.includes(`${scene.rootDir}/`)),
      [],
    );
    assert.ok(
      scene.driver.calls.some((call) => call.includes('unprepare')),
      scene.driver.calls.join(),
    );
  });

  it('leaves state files that the Go kubelet reads', async () => {
    const noCpus = (): boolean => goReads.cpus(scene.state('cpu_manager_state')).entries === undefined;
    await until('processors are shared again', noCpus, 120_000);
    goReads.memory(scene.state('memory_manager_state'));
    await untilSeen(
      'nothing is granted',
      () => ['allocated_pods_state', 'actuated_pods_state'].map((file) => goReads.resources(scene.state(file))),
      (seen) => seen.every((granted) => Object.keys(granted).length === 0),
    );
    await untilSeen(
      'no claim is kept',
      () => goReads.claims(scene.state('dra_manager_state')),
      (seen) => seen.length === 0,
    );
    goReads.devices(scene.state('device-plugins/kubelet_internal_checkpoint'));
  });
});
