// The agent as a process with a small heap, on a runtime in memory and an API server that takes everything, and what can be
// seen of it from outside: turns of its event loop, memory, health, lease, log.
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, readSync, readdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { join } from 'node:path';
import { cpuMs } from '../../bench/statistics.ts';
import { Kubelet } from '../../bench/world.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { CriProxy } from '../faults/cri-proxy.ts';
import { FakeCri } from '../fakes/fake-cri.ts';
import { BUSYBOX_IMAGE, startContainerd } from '../harness/containerd.ts';
import { makeNodeFolder, removeNodeFolder } from '../harness/node-folder.ts';
import { freePort } from '../harness/ports.ts';
import { until } from '../harness/until.ts';
import { LenientApiServer } from './lenient-api-server.ts';
import type { Turns } from './turns-probe.ts';

const { signal } = new AbortController();
const NODE = 'limits';
const HEAP_MIB = 512;
const COMMAND = join(import.meta.dirname, '..', '..', 'bin', 'kubelet');
const PROBE = join(import.meta.dirname, 'turns-probe.ts');

export type Runtime = 'memory' | 'containerd';
type Answer = { readonly status: number; readonly body: string };

export class AgentWorld {
  readonly api = new LenientApiServer();
  readonly dir: string;
  readonly proxy: CriProxy;
  readonly kubelet: Kubelet;
  configuration = '';
  /** The end of the log. */
  recent = '';
  onLog: (text: string) => void = () => undefined;
  #looked = 0;
  readonly #unreadable = new Set<string>();
  readonly #undo: (() => Promise<unknown>)[];
  readonly #ports: { readonly main: number; readonly healthz: number };

  private constructor(
    dir: string,
    proxy: CriProxy,
    ports: { readonly main: number; readonly healthz: number },
    undo: (() => Promise<unknown>)[],
  ) {
    this.dir = dir;
    this.proxy = proxy;
    this.#ports = ports;
    this.#undo = undo;
    const nodeOptions = [`--import=${PROBE}`, `--max-old-space-size=${HEAP_MIB}`];
    const options = { command: COMMAND, nodeName: NODE, kubeconfig: join(dir, 'kubeconfig'), channel: true };
    this.kubelet = new Kubelet(dir, {
      ...options,
      nodeOptions,
      env: { KUBELET_TS_SOURCE: '1' },
      flags: ['-v=2', '--node-page-port=0'],
    });
  }

  static async start(runtime: Runtime): Promise<AgentWorld> {
    const undo: (() => Promise<unknown>)[] = [];
    try {
      const dir = await makeNodeFolder();
      undo.push(() => removeNodeFolder(dir));
      const cgroup = `/kts-limits-${process.pid}`;
      const cgroups = await openCgroups(systemClock, 'cgroupfs');
      await cgroups.create(cgroup, {}, signal);
      undo.push(() => cgroups.destroy(cgroup, signal));
      const socket = await startRuntime(runtime, undo);
      const proxy = new CriProxy(socket);
      await proxy.start();
      undo.push(() => proxy.stop());
      const ports = { main: await freePort(), healthz: await freePort() };
      const world = new AgentWorld(dir, proxy, ports, undo);
      await world.#begin(cgroup);
      return world;
    } catch (err) {
      for (const step of undo.toReversed()) await step().catch(() => undefined);
      throw err;
    }
  }

  async stop(): Promise<void> {
    for (const step of this.#undo.splice(0).reverse()) await step();
  }

  get manifests(): string {
    return join(this.dir, 'manifests');
  }

  get log(): string {
    return readFileSync(join(this.dir, 'kubelet.log'), 'utf8');
  }

  /** What was written to the log since the last look. */
  look(): string {
    const file = join(this.dir, 'kubelet.log');
    const fd = openSync(file, 'r');
    try {
      const size = fstatSync(fd).size;
      const bytes = Buffer.alloc(Math.max(0, size - this.#looked));
      const read = readSync(fd, bytes, 0, bytes.length, this.#looked);
      this.#looked += read;
      const text = bytes.toString('utf8', 0, read);
      for (const line of text.split('\n'))
        if (line.includes('sent a broken pod'))
          for (const [, name = ''] of line.matchAll(/\b(p\d+)\b/g)) this.#unreadable.add(name);
      this.recent = (this.recent + text).slice(-200_000);
      this.onLog(text);
      return text;
    } finally {
      closeSync(fd);
    }
  }

  /** Among the last lines of the log. */
  logHas(text: string): boolean {
    this.look();
    return this.recent.includes(text);
  }

  logNames(name: string): boolean {
    this.look();
    return this.#unreadable.has(name);
  }

  /** It said that it cannot read the pod. */
  unreadable(name: string): boolean {
    return this.#unreadable.has(name);
  }

  /** What it said of a pod. */
  excerpt(name: string): string {
    this.look();
    const lines = this.recent.split('\n').filter((line) => new RegExp(`\\b${name}\\b`).test(line));
    const status = JSON.stringify(this.api.get('/api/v1/pods', `default/${name}`)?.['status'] ?? {});
    return [...lines.slice(-5), `status ${status}`].map((line) => `    ${line.slice(0, 600)}`).join('\n');
  }

  get runs(): boolean {
    return this.kubelet.process.exitCode === null && this.kubelet.process.signalCode === null;
  }

  /** The longest turn since the last question. */
  turns(): Promise<Turns> {
    return new Promise((resolve) => {
      this.kubelet.process.once('message', (told) => resolve(told as Turns));
      this.kubelet.process.send({});
    });
  }

  /** The most resident memory since the last question, in MB. */
  mostMemory(): number {
    const { pid } = this.kubelet;
    const kib = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
    return Math.round((kib * 1024) / 1e6);
  }

  /** How long the agent's main thread waited for a processor, and how long this one waited or computed. */
  excusedMs(): { readonly agent: number; readonly own: number } {
    const schedule = (file: string): number[] => readFileSync(file, 'utf8').split(' ').map(Number);
    const { pid } = this.kubelet;
    const [, waited = 0] = schedule(`/proc/${pid}/task/${pid}/schedstat`);
    const [ran = 0, alsoWaited = 0] = schedule('/proc/self/schedstat');
    return { agent: waited / 1e6, own: (ran + alsoWaited) / 1e6 };
  }

  /** Processor time it has used. */
  cpuMs(): number {
    return cpuMs(this.kubelet.pid);
  }

  healthz(): Promise<Answer> {
    return get(`http://127.0.0.1:${this.#ports.healthz}/healthz`);
  }

  /** Of the main port. */
  page(path: string): Promise<Answer> {
    return get(`https://127.0.0.1:${this.#ports.main}${path}`);
  }

  /** Directories of pods, volumes included. */
  podFolders(): string[] {
    return readdirSync(join(this.dir, 'kubelet', 'pods'));
  }

  async #begin(cgroup: string): Promise<void> {
    await this.api.start();
    this.#undo.push(() => this.api.stop());
    mkdirSync(this.manifests);
    this.configuration = this.#config(cgroup);
    writeFileSync(join(this.dir, 'config.yaml'), this.configuration);
    writeFileSync(join(this.dir, 'kubeconfig'), kubeconfig(this.api.url), { mode: 0o600 });
    this.#undo.push(() => this.kubelet.stop());
    await this.kubelet.start();
    await until('the node is ready', () => {
      if (!this.runs) throw new Error(`the agent ended: ${this.log.slice(-2000)}`);
      const status = this.api.get('/api/v1/nodes', `/${NODE}`)?.['status'] as
        | { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
        | undefined;
      return status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True');
    });
  }

  #config(cgroup: string): string {
    return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: ${this.manifests}
containerRuntimeEndpoint: ${this.proxy.endpoint}
failCgroupV1: false
failSwapOn: false
maxPods: 1000
cgroupRoot: ${cgroup}
podLogsDir: ${this.dir}/pod-logs
volumePluginDir: ${this.dir}/volume-plugins
address: 127.0.0.1
port: ${this.#ports.main}
healthzPort: ${this.#ports.healthz}
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
fileCheckFrequency: 1s
kubeAPIQPS: 1000
kubeAPIBurst: 1000
eventRecordQPS: 0
makeIPTablesUtilChains: false
featureGates: {KubeletInUserNamespace: true} # leaves this machine's kernel settings alone
evictionHard: {memory.available: 1Mi, nodefs.available: 0%, imagefs.available: 0%, nodefs.inodesFree: 0%}
`;
  }
}

async function startRuntime(runtime: Runtime, undo: (() => Promise<unknown>)[]): Promise<string> {
  if (runtime === 'containerd') {
    const containerd = await startContainerd({ version: '2.1' });
    undo.push(() => containerd.stop());
    return containerd.endpoint.replace(/^unix:\/\//, '');
  }
  const fake = new FakeCri({ recordCalls: false });
  fake.state.addImage(BUSYBOX_IMAGE);
  await fake.start();
  undo.push(() => fake.stop());
  return fake.socketPath;
}

const kubeconfig = (server: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'c', user: {} }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
  });

function get(url: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { agent: false, rejectUnauthorized: false };
    const asked = (url.startsWith('https') ? https : http).request(url, options, (answer) => {
      let body = '';
      answer.setEncoding('utf8');
      answer.on('data', (text: string) => (body += text));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
    });
    asked.on('error', reject);
    asked.end();
  });
}

export const NODE_NAME = NODE;
