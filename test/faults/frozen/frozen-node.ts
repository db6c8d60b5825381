// A kubelet process of its own with a runtime in memory, for one row of the matrix: its way to the API server, its runtime
// and the memory it believes the machine has can be taken away and given back.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Pod, PodSpec } from '../../../src/core/pod.ts';
import { ContainerState, CgroupDriver } from '../../../src/cri/gen/cri.ts';
import { openCgroups } from '../../../src/host/cgroups/open.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { EVENTS, NODES, PODS } from '../../../src/kube/resources.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { isFault } from '../../../src/lib/errors.ts';
import { FakeCri } from '../../fakes/fake-cri.ts';
import type { TestApiServer } from '../../harness/api-server.ts';
import { BUSYBOX_IMAGE } from '../../harness/containerd.ts';
import { freePort } from '../../harness/ports.ts';
import { until } from '../../harness/until.ts';
import { CriProxy } from '../cri-proxy.ts';
import { FrozenWire } from './frozen-wire.ts';

const never = new AbortController().signal;
const namespace = 'default';
const KUBELET = join(import.meta.dirname, '..', '..', '..', 'bin', 'kubelet');
const MEMINFO = readFileSync('/proc/meminfo', 'utf8');
/** Far below the threshold of the configuration. */
const SHORT = 'MemTotal:         65536 kB\nMemFree: 0 kB\nMemAvailable: 0 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n';

export type FrozenNodeOptions = {
  readonly name: string;
  readonly dir: string;
  readonly api: TestApiServer;
  readonly client: KubeClient;
  /** Where the API server is for the kubelet: something else may be in between. */
  readonly apiPort?: number;
  /** `nodeStatusReportFrequency` */
  readonly statusReport?: string;
  /** Where the kubelet keeps what it has, if not in `dir`. */
  readonly rootDir?: string;
  readonly systemd?: boolean;
  readonly config?: string;
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Port of /healthz on this machine; none where it is absent. */
  readonly healthzPort?: number;
};

export class FrozenNode {
  readonly name: string;
  readonly cri: FakeCri;
  readonly proxy: CriProxy;
  readonly wire: FrozenWire;
  readonly manifests: string;
  /** When the probe was answered. */
  readonly probes: number[] = [];
  readonly #o: FrozenNodeOptions;
  readonly #probed: Server;
  readonly #cgroup: string;
  #child: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();

  constructor(options: FrozenNodeOptions) {
    this.#o = options;
    this.name = options.name;
    const driver = options.systemd === true ? CgroupDriver.SYSTEMD : CgroupDriver.CGROUPFS;
    this.cri = new FakeCri({ recordCalls: false, cgroupDriver: driver });
    this.proxy = new CriProxy(this.cri.socketPath);
    this.wire = new FrozenWire(options.apiPort ?? options.api.port);
    this.manifests = join(options.dir, 'manifests');
    this.#cgroup = `kts${process.pid}${options.name}`;
    this.#probed = createServer((_, response) => {
      this.probes.push(performance.now());
      response.end('ok');
    });
  }

  async start(): Promise<void> {
    const { dir, api, config = '' } = this.#o;
    mkdirSync(this.manifests, { recursive: true });
    this.cri.state.addImage(BUSYBOX_IMAGE);
    await this.cri.start();
    await this.proxy.start();
    await this.wire.start();
    await new Promise<void>((resolve) => this.#probed.listen(0, '127.0.0.1', resolve));
    const cgroups = await openCgroups(systemClock, 'cgroupfs');
    await cgroups.create(this.#cgroupPath(), {}, never);
    const text = api.nodeKubeconfig(this.name).replaceAll(`:${api.port}`, `:${this.wire.port}`);
    writeFileSync(join(dir, 'kubeconfig'), text, { mode: 0o600 });
    writeFileSync(join(dir, 'meminfo'), MEMINFO);
    writeFileSync(join(dir, 'config.yaml'), `${await this.#config()}${config}\n`);
    const child = this.run();
    await until(`${this.name} is ready`, async () => {
      if (child.exitCode !== null) throw new Error(`the kubelet ended: ${this.log().slice(-2000)}`);
      const node = await this.#o.client.get(NODES, { name: this.name }, never);
      return node.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True');
    });
  }

  /** Starts the kubelet, again if one ran before and has exited. */
  run(): ChildProcess {
    const { dir, flags = [], env = {}, rootDir = join(dir, 'kubelet') } = this.#o;
    const log = openSync(join(dir, 'kubelet.log'), 'a');
    // Only this kubelet sees the other /proc/meminfo.
    const script = 'mount --bind "$0" /proc/meminfo && exec "$@"';
    const program = [
      KUBELET,
      `--config=${join(dir, 'config.yaml')}`,
      `--kubeconfig=${join(dir, 'kubeconfig')}`,
      `--root-dir=${rootDir}`,
      `--cert-dir=${join(dir, 'pki')}`,
      `--hostname-override=${this.name}`,
      '-v=4',
      ...flags,
    ];
    const child = spawn(
      'unshare',
      ['-m', '--propagation', 'slave', 'sh', '-c', script, join(dir, 'meminfo'), ...program],
      {
        stdio: ['ignore', log, log],
        env: { ...process.env, KUBELET_TS_SOURCE: '1', ...env },
      },
    );
    closeSync(log);
    this.#child = child;
    this.#exited = new Promise((resolve) => child.once('exit', () => resolve()));
    return child;
  }

  async #config(): Promise<string> {
    const driver = this.#o.systemd === true ? 'systemd' : 'cgroupfs';
    return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: ${this.manifests}
containerRuntimeEndpoint: ${this.proxy.endpoint}
cgroupDriver: ${driver}
failCgroupV1: false
failSwapOn: false
cgroupRoot: /${this.#cgroup}
podLogsDir: ${this.#o.dir}/pod-logs
volumePluginDir: ${this.#o.dir}/volume-plugins
address: 127.0.0.1
port: ${await freePort()}
healthzPort: ${this.#o.healthzPort ?? 0}
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
makeIPTablesUtilChains: false
featureGates: {KubeletInUserNamespace: true} # leaves this machine's kernel settings alone
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
nodeStatusUpdateFrequency: 1s
nodeStatusReportFrequency: ${this.#o.statusReport ?? '1s'}
volumeStatsAggPeriod: 1s
`;
  }

  #cgroupPath(): string {
    return this.#o.systemd === true ? `/${this.#cgroup}.slice` : `/${this.#cgroup}`;
  }

  log(): string {
    return readFileSync(join(this.#o.dir, 'kubelet.log'), 'utf8');
  }

  /** The kubelet believes that the machine has almost no memory. */
  memory(state: 'short' | 'enough'): void {
    writeFileSync(join(this.#o.dir, 'meminfo'), state === 'short' ? SHORT : MEMINFO);
  }

  pod(name: string, spec: Partial<PodSpec> = {}): Pod {
    const container = {
      name: 'c',
      image: BUSYBOX_IMAGE,
      imagePullPolicy: 'IfNotPresent',
      // What ends well has succeeded, also when it was evicted.
      command: ['sh', '-c', "trap 'exit 1' TERM; sleep 100000"],
    };
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: {
        nodeName: this.name,
        terminationGracePeriodSeconds: 1,
        automountServiceAccountToken: false,
        priorityClassName: 'system-node-critical',
        ...spec,
        containers: [{ ...container, ...spec.containers?.[0] }],
      },
    } as unknown as Pod;
  }

  /** Its liveness depends on a server of this test. */
  probedPod(name: string): Pod {
    const { port } = this.#probed.address() as AddressInfo;
    const probe = {
      httpGet: { host: '127.0.0.1', port, path: '/' },
      periodSeconds: 1,
      timeoutSeconds: 1,
      failureThreshold: 3,
    };
    return this.pod(name, { containers: [{ name: 'c', livenessProbe: probe }] });
  }

  async create(pod: Pod): Promise<void> {
    await this.#o.client.create(PODS, { namespace }, pod, never);
  }

  async delete(name: string): Promise<void> {
    await this.#o.client.delete(PODS, { namespace, name }, {}, never);
  }

  /** As the API server shows it. */
  async shown(name: string): Promise<Pod | undefined> {
    try {
      return await this.#o.client.get(PODS, { namespace, name }, never);
    } catch (err) {
      if (isFault(err, 'notFound')) return undefined;
      throw err;
    }
  }

  async eventOf(pod: string, reason: string): Promise<boolean> {
    const query = { fieldSelector: `involvedObject.name=${pod},reason=${reason}` };
    return (await this.#o.client.list(EVENTS, { namespace, query }, never)).items.length > 0;
  }

  /** Whether a container of this pod runs in the runtime. */
  runs(pod: string): boolean {
    return [...this.cri.state.containers.values()].some(
      (c) => c.state === ContainerState.CONTAINER_RUNNING && c.sandbox.config.metadata?.name === pod,
    );
  }

  /** When the node's status was written, by this process' clock. */
  async statusWrites(): Promise<readonly number[]> {
    const offset = performance.now() - Date.now();
    const url = new RegExp(`^/api/v1/nodes/${this.name}/status(\\?|$)`);
    return (await this.#o.api.served()).filter((r) => url.test(r.url) && r.code === 200).map((r) => r.atMs + offset);
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  exited(): Promise<void> {
    return this.#exited;
  }

  async stop(): Promise<void> {
    if (this.running) this.signal('SIGKILL');
    await this.#exited;
    await this.wire.stop();
    await this.proxy.stop();
    await this.cri.stop();
    await new Promise((resolve) => this.#probed.close(resolve));
    const cgroups = await openCgroups(systemClock, 'cgroupfs');
    await cgroups.destroy(this.#cgroupPath(), never);
  }
}
