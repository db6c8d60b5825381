// A whole node for tests: private containerd, API server (embedded or real), and the kubelet as a process of its own,
// with a recording of every CRI call between kubelet and runtime. Everything is below one temporary folder.
import { spawn, type ChildProcess } from 'node:child_process';
import { appendFileSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { KubeClient } from '../../src/kube/client.ts';
import { writeFileAtomic } from '../../src/lib/atomic-file.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { startTestApiServer, type EmbeddedOptions, type ServedRequest, type TestApiServer } from './api-server.ts';
import { connectClient } from './connect-client.ts';
import { startContainerd, type PrivateRuntime } from './containerd.ts';
import type { ContainerdVersion } from './containerd-binaries.ts';
import { crioBinaries, startCrio } from './crio.ts';
import { makeNodeFolder, removeNodeFolder } from './node-folder.ts';
import { freePort } from './ports.ts';
import { CriProxy } from '../faults/cri-proxy.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import { timePasses, until } from './until.ts';

export const NODE_NAME = 'n1';
const KUBELET = join(import.meta.dirname, '..', '..', 'bin', 'kubelet');

export type NodeOptions = {
  /** The kubelet speaks to containerd itself, not through the proxy: what is no part of the CRI is there too. */
  readonly direct?: boolean;
  readonly containerd?: ContainerdVersion;
  /** Without: a standalone node. */
  readonly cluster?: boolean;
  /** Listen on the node's own address, where the API server looks for it, instead of on the loopback interface. */
  readonly reachable?: boolean;
  /** Keeps images and containers on a filesystem of their own, this large. */
  readonly diskMiB?: number;
  /** The kubelet's own directory, and with it all volumes, is on that filesystem too. */
  readonly oneDisk?: boolean;
  /** A runc that can map the owners of mounts, for pods with users of their own. */
  readonly idmapRunc?: boolean;
  /** Merged into the KubeletConfiguration, as YAML lines. */
  readonly config?: string;
  readonly flags?: readonly string[];
  /** Called when the API server is up, before the kubelet starts: what must be in the cluster by then. */
  readonly prepare?: (node: Omit<TestNode, 'kubelet'>) => Promise<void> | void;
  /** Gives the kubelet its identity; by default `--kubeconfig` with a node's certificate in it. */
  readonly identity?: (api: TestApiServer, dir: string) => readonly string[];
  readonly apiServer?: EmbeddedOptions;
};

export interface TestNode {
  readonly dir: string;
  readonly containerd: PrivateRuntime;
  readonly api: TestApiServer;
  readonly client: KubeClient;
  readonly cri: CriProxy;
  readonly manifests: string;
  readonly cgroupRoot: string;
  readonly healthzPort: number;
  readonly port: number;
  readonly kubelet: KubeletProcess;
  /** What the API server refused this node (403), against the rules. */
  refusals(): Promise<readonly string[]>;
  /** Rewrites the configuration file and tells the kubelet, if it runs. */
  reconfigure(change: (text: string) => string): Promise<void>;
  log(): Promise<string>;
  stop(): Promise<void>;
}

const NEVER = new AbortController().signal;

export async function startNode(options: NodeOptions = {}): Promise<TestNode> {
  const undo: (() => Promise<unknown>)[] = [];
  const tearDown = async (): Promise<void> => {
    const failures: unknown[] = [];
    for (const step of undo.splice(0).reverse()) await step().catch((err: unknown) => failures.push(err));
    if (failures.length > 0) throw new AggregateError(failures, `could not be cleaned up: ${String(failures[0])}`);
  };
  try {
    return await buildNode(options, undo, tearDown);
  } catch (err) {
    await tearDown().catch(() => undefined); // the first failure says more
    throw err;
  }
}

async function buildNode(
  options: NodeOptions,
  undo: (() => Promise<unknown>)[],
  stop: () => Promise<void>,
): Promise<TestNode> {
  const dir = await makeNodeFolder();
  undo.push(() => removeNodeFolder(dir));
  const cgroups = await openCgroups(systemClock, 'cgroupfs');
  const [port, healthzPort] = [await freePort(), await freePort()];
  const cgroupRoot = `/kts-${process.pid}-${port}`;
  await cgroups.create(cgroupRoot, {}, NEVER);
  undo.push(() => cgroups.destroy(cgroupRoot, NEVER));
  const [containerd, api] = await bothStarted(
    startRuntime(options),
    startTestApiServer(join(dir, 'api'), options.apiServer),
    undo,
  );
  const cri = new CriProxy(containerd.socketPath);
  await cri.start();
  undo.push(() => cri.stop());
  const manifests = join(dir, 'manifests');
  mkdirSync(manifests);
  const address = options.reachable === true ? ownAddress() : '127.0.0.1';
  const endpoint = options.direct === true ? containerd.endpoint : cri.endpoint;
  const places = { dir, endpoint, manifests, port, healthzPort, cgroupRoot, clientCa: api.caPath };
  const configPath = join(dir, 'config.yaml');
  writeFileSync(configPath, configText({ ...places, address, extra: options.config ?? '' }));
  const identity = options.cluster === false ? [] : (options.identity ?? nodeIdentity)(api, dir);
  const rootDir = options.oneDisk === true ? ['--root-dir', join(containerd.root, 'lib', 'kubelet')] : [];
  const kubelet = new KubeletProcess(dir, [...identity, ...rootDir, ...(options.flags ?? [])]);
  const client = await connectClient(api.adminKubeconfigPath);
  const node: TestNode = {
    dir,
    containerd,
    api,
    client,
    cri,
    manifests,
    cgroupRoot,
    port,
    healthzPort,
    kubelet,
    refusals: async () => refusalsIn(await api.served(), api),
    reconfigure: async (change) => {
      await writeFileAtomic(configPath, change(await readFile(configPath, 'utf8')), 0o644);
      kubelet.signal('SIGHUP');
    },
    log: () => readFile(join(dir, 'kubelet.log'), 'utf8'),
    stop,
  };
  await options.prepare?.(node);
  undo.push(() => kubelet.kill('SIGTERM'));
  await kubelet.start(healthzPort);
  return node;
}

/** CRI-O where its programs are named and the test does not ask for what only a containerd of ours has. */
function startRuntime({ containerd, diskMiB, idmapRunc = false }: NodeOptions): Promise<PrivateRuntime> {
  const crio = crioBinaries();
  if (crio !== undefined && containerd === undefined && diskMiB === undefined && !idmapRunc) return startCrio(crio);
  const disk = diskMiB === undefined ? {} : { diskMiB };
  return startContainerd({ version: containerd ?? '2.1', idmapRunc, ...disk });
}

type Stoppable = { stop(): Promise<unknown> };

/** Side by side. When one of them fails, the other is stopped with everything else. */
async function bothStarted<A extends Stoppable, B extends Stoppable>(
  first: Promise<A>,
  second: Promise<B>,
  undo: (() => Promise<unknown>)[],
): Promise<readonly [A, B]> {
  for (const started of await Promise.allSettled([first, second]))
    if (started.status === 'fulfilled') undo.push(() => started.value.stop());
  return [await first, await second];
}

function nodeIdentity(api: TestApiServer, dir: string): readonly string[] {
  writeFileSync(join(dir, 'kubeconfig'), api.nodeKubeconfig(NODE_NAME), { mode: 0o600 });
  return ['--kubeconfig', join(dir, 'kubeconfig')];
}

/**
 * What the node authorizer never gets to allow. A node may not read pods that are gone, and a real API server learns of
 * a new pod's references a moment later than the node does.
 */
function refusalsIn(served: readonly ServedRequest[], api: TestApiServer): readonly string[] {
  const own = served.filter(({ user }) => user === `system:node:${NODE_NAME}`);
  const what = ({ method, url }: ServedRequest): string => `${method} ${url.split('?')[0] ?? ''}`;
  const allowedLast = new Map(own.map((request) => [what(request), request.code !== 403]));
  return own
    .filter(({ code, atMs }) => code === 403 && !api.wasStarting(atMs))
    .map(what)
    .filter((request) => !/^GET .*\/pods\/[^/]+$/.test(request))
    .filter((request) => api.kind === 'embedded' || allowedLast.get(request) !== true);
}

const ownAddress = (): string =>
  Object.values(networkInterfaces())
    .flat()
    .find((i) => i !== undefined && i.family === 'IPv4' && !i.internal)?.address ?? '127.0.0.1';

type ConfigInput = {
  dir: string;
  endpoint: string;
  manifests: string;
  port: number;
  healthzPort: number;
  cgroupRoot: string;
  clientCa: string;
  address: string;
  extra: string;
};

const configText = ({
  dir,
  endpoint,
  manifests,
  port,
  healthzPort,
  cgroupRoot,
  clientCa,
  address,
  extra,
}: ConfigInput): string => `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: ${manifests}
containerRuntimeEndpoint: ${endpoint}
failCgroupV1: false
failSwapOn: false
cgroupRoot: ${cgroupRoot}
podLogsDir: ${dir}/pod-logs
volumePluginDir: ${dir}/volume-plugins
address: ${address}
port: ${port}
healthzPort: ${healthzPort}
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
makeIPTablesUtilChains: false
featureGates: {KubeletInUserNamespace: true} # leaves this machine's kernel settings alone
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: ${clientCa}}}
evictionHard: {memory.available: 1Mi, nodefs.available: 1%, imagefs.available: 1%}
${extra}
`;

export class KubeletProcess {
  readonly #dir: string;
  /** Of the next start. */
  flags: readonly string[];
  #child: ChildProcess | undefined;
  #isTold = false;

  constructor(dir: string, flags: readonly string[]) {
    this.#dir = dir;
    this.flags = flags;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** It ended without being told to. */
  get crashed(): boolean {
    return this.#child !== undefined && this.#child.exitCode !== null;
  }

  /** Starts the process; resolves when it answers on its health port (at once without one). */
  async start(healthzPort?: number): Promise<void> {
    const out = openSync(join(this.#dir, 'kubelet.log'), 'a');
    appendFileSync(join(this.#dir, 'kubelet.log'), `--- start ${new Date().toISOString()}\n`);
    const args = [
      '--config',
      join(this.#dir, 'config.yaml'),
      '--root-dir',
      join(this.#dir, 'kubelet'),
      '--cert-dir',
      join(this.#dir, 'pki'),
      '--node-page-port=0', // unless a test asks for it
    ];
    this.#child = spawn(KUBELET, [...args, '--hostname-override', NODE_NAME, '-v=4', ...this.flags], {
      stdio: ['ignore', out, out],
      env: { ...process.env, KUBELET_TS_SOURCE: '1' }, // never a bundle that was built some time ago
    });
    this.#isTold = false;
    this.#child.once('exit', (code, signal) => void (this.#isTold || this.#complain(code ?? signal)));
    if (healthzPort === undefined) return;
    for (let i = 0; i < 1200; i++) {
      if (this.#child.exitCode !== null)
        throw new Error(`kubelet ended: ${await readFile(join(this.#dir, 'kubelet.log'), 'utf8')}`);
      const up = await fetch(`http://127.0.0.1:${healthzPort}/healthz`).then(
        (r) => r.ok,
        () => false,
      );
      if (up) return;
      await timePasses(50, 'another instant');
    }
    throw new Error('kubelet did not answer on its health port');
  }

  /** Everything after it would fail without a word of why. */
  #complain(how: number | string | null): void {
    const log = readFileSync(join(this.#dir, 'kubelet.log'), 'utf8').split('\n').slice(-20).join('\n');
    console.error(`the kubelet ended by itself (${how}):\n${log}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#isTold = true;
    this.#child?.kill(signal);
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    this.#isTold = true;
    child.kill(signal);
    const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
    await until(`the kubelet has ended by ${signal}`, hasEnded).catch((err: unknown) => {
      child.kill('SIGKILL');
      const log = readFileSync(join(this.#dir, 'kubelet.log'), 'utf8');
      throw new Error(`${String(err)}\n${log.slice(-3000)}`, { cause: err });
    });
  }
}
