// What is measured: a private containerd, the embedded API server and the kubelet, each a process of its own, all below
// one folder in /tmp and one cgroup. `stop()` takes everything away again.
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PodSandboxState } from '../src/cri/gen/cri.ts';
import { openCgroups } from '../src/host/cgroups/open.ts';
import type { KubeClient } from '../src/kube/client.ts';
import { connectApi } from '../src/kube/connect.ts';
import { resolveKubeconfig } from '../src/kube/kubeconfig.ts';
import { NODES } from '../src/kube/resources.ts';
import { systemClock } from '../src/lib/clock.ts';
import { silentLogger } from '../src/lib/logger.ts';
import { startContainerd, type PrivateRuntime } from '../test/harness/containerd.ts';
import { makeNodeFolder, removeNodeFolder } from '../test/harness/node-folder.ts';
import { Floor } from './floor.ts';
import { NODE_NAME, PodWatch } from './pods.ts';
import { inParallel } from './statistics.ts';

const { signal } = new AbortController();

export type WorldOptions = {
  /** The launcher. */
  readonly command: string;
  /** For the kubelet's Node: profiles, a probe inside. */
  readonly nodeOptions?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly flags?: readonly string[];
  /** With an IPC channel, for a probe inside. */
  readonly channel?: boolean;
  /** Of a node that is one of many; the benchmark's own by default. */
  readonly nodeName?: string;
  readonly kubeconfig?: string;
};

export interface World {
  readonly dir: string;
  readonly manifests: string;
  readonly containerd: PrivateRuntime;
  /** Without a kubelet: for the floor, and for kubelets of their own. */
  readonly bare: PrivateRuntime;
  readonly client: KubeClient;
  readonly floor: Floor;
  readonly pods: PodWatch;
  readonly kubelet: Kubelet;
  /** The kubelet's log file. */
  readonly log: string;
  /** Below it everything that is measured lives. */
  readonly cgroupRoot: string;
  /** To be done at the end, whatever way that comes. */
  atEnd(step: () => Promise<unknown>): void;
  stop(): Promise<void>;
}

export async function startWorld(options: WorldOptions): Promise<World> {
  const undo: (() => Promise<unknown>)[] = [];
  const tearDown = async (): Promise<void> => {
    const failures: unknown[] = [];
    for (const step of undo.splice(0).reverse()) await step().catch((err: unknown) => failures.push(err));
    if (failures.length > 0)
      throw new AggregateError(failures, `not everything could be cleaned up: ${String(failures[0])}`);
  };
  try {
    return await build(options, undo, tearDown);
  } catch (err) {
    await tearDown().catch(() => undefined);
    throw err;
  }
}

async function build(
  options: WorldOptions,
  undo: (() => Promise<unknown>)[],
  stop: () => Promise<void>,
): Promise<World> {
  const dir = await makeNodeFolder();
  undo.push(() => removeNodeFolder(dir));
  const cgroups = await openCgroups(systemClock, 'cgroupfs');
  const cgroupRoot = `/kts-bench-${process.pid}`;
  await cgroups.create(cgroupRoot, {}, signal);
  undo.push(() => cgroups.destroy(cgroupRoot, signal));
  const containerd = await startContainerd({ version: '2.1' });
  undo.push(() => containerd.stop());
  // The floor has a containerd of its own: pods that no source knows would be stopped by the kubelet.
  const bare = await startContainerd({ version: '2.1' });
  undo.push(() => bare.stop());
  const api = await startApi(join(dir, 'api'));
  undo.push(() => ended(api, 'SIGTERM'));
  const client = await connect(join(dir, 'api', 'admin.kubeconfig'));
  const manifests = join(dir, 'manifests');
  mkdirSync(manifests);
  writeFileSync(join(dir, 'config.yaml'), configText({ dir, endpoint: containerd.endpoint, manifests, cgroupRoot }));
  const kubelet = new Kubelet(dir, options);
  undo.push(() => kubelet.stop());
  await kubelet.start();
  await nodeReady(client, dir);
  const pods = new PodWatch(client);
  await pods.start();
  undo.push(() => pods.stop());
  const floor = new Floor(bare.runtime, dir, cgroupRoot);
  const atEnd = (step: () => Promise<unknown>): void => void undo.push(step);
  const log = join(dir, 'kubelet.log');
  return { dir, manifests, containerd, bare, client, floor, pods, kubelet, log, cgroupRoot, atEnd, stop };
}

export async function startApi(dir: string): Promise<ChildProcess> {
  mkdirSync(dir, { recursive: true });
  const child = fork(join(import.meta.dirname, 'api-process.ts'), [dir, NODE_NAME], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve());
    child.once('exit', (code) => reject(new Error(`the API server ended with ${code}`)));
  });
  return child;
}

export async function connect(kubeconfig: string): Promise<KubeClient> {
  const access = await resolveKubeconfig(await readFile(kubeconfig, 'utf8'), kubeconfig);
  const options = {
    version: 'bench',
    architecture: 'amd64',
    eventQps: 0,
    eventBurst: 0,
    leaseDurationSeconds: 40,
    statusUpdateMs: 10_000,
  };
  return connectApi({ clock: systemClock, log: silentLogger }, access, { ...options, qps: 0, burst: 0 }).main;
}

export async function nodeReady(client: KubeClient, dir: string): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    const node = await client.get(NODES, { name: NODE_NAME }, signal).catch(() => undefined);
    if (node?.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True')) return;
    await sleep(50);
  }
  const log = await readFile(join(dir, 'kubelet.log'), 'utf8');
  throw new Error(`the node did not become ready: ${log.slice(-2000)}`);
}

/**
 * What pods that are gone left in the runtime: the kubelet collects it once a minute, in the middle of something else. One
 * that the kubelet is just removing itself is looked at again.
 */
export async function removeSandboxes({ containerd: { runtime } }: World): Promise<void> {
  let refused: unknown;
  for (let tries = 0; tries < 50; tries++) {
    const { items } = await runtime.listPodSandbox({}, signal);
    const dead = items.filter(({ state }) => state === PodSandboxState.SANDBOX_NOTREADY);
    if (dead.length === 0) return;
    await inParallel(dead, 4, async ({ id }) => {
      await runtime.removePodSandbox({ podSandboxId: id }, signal).catch((err: unknown) => (refused = err));
    });
    await sleep(100);
  }
  throw new Error('the runtime does not let go of sandboxes that have stopped', { cause: refused });
}

/** Sends a signal and waits for the end; a process that does not listen is killed. */
export async function ended(child: ChildProcess, by: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill(by);
  const hard = systemClock.after(20_000, () => child.kill('SIGKILL'));
  await gone;
  hard.cancel();
}

export class Kubelet {
  readonly #dir: string;
  readonly #o: WorldOptions;
  #child: ChildProcess | undefined;

  constructor(dir: string, options: WorldOptions) {
    this.#dir = dir;
    this.#o = options;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined || this.#child?.exitCode !== null) throw new Error('the kubelet does not run');
    return pid;
  }

  get process(): ChildProcess {
    if (this.#child === undefined) throw new Error('the kubelet does not run');
    return this.#child;
  }

  async start(): Promise<void> {
    const { nodeOptions = [] } = this.#o;
    const log = openSync(join(this.#dir, 'kubelet.log'), 'a');
    const flags = [
      `--config=${join(this.#dir, 'config.yaml')}`,
      `--kubeconfig=${this.#o.kubeconfig ?? join(this.#dir, 'api', 'node.kubeconfig')}`,
      `--root-dir=${join(this.#dir, 'kubelet')}`,
      `--cert-dir=${join(this.#dir, 'pki')}`,
      `--hostname-override=${this.#o.nodeName ?? NODE_NAME}`,
      ...(this.#o.flags ?? []),
    ];
    this.#child = spawn(this.#o.command, flags, {
      stdio: ['ignore', log, log, ...(this.#o.channel === true ? (['ipc'] as const) : [])],
      env: {
        ...process.env,
        ...this.#o.env,
        ...(nodeOptions.length === 0 ? {} : { NODE_OPTIONS: nodeOptions.join(' ') }),
      },
    });
    closeSync(log);
    await new Promise<void>((resolve, reject) => {
      this.#child?.once('spawn', () => resolve());
      this.#child?.once('error', reject);
    });
  }

  async stop(by: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.#child !== undefined) await ended(this.#child, by);
  }
}

export const configText = (of: {
  dir: string;
  endpoint: string;
  manifests: string;
  cgroupRoot: string;
}): string => `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: ${of.manifests}
containerRuntimeEndpoint: ${of.endpoint}
failCgroupV1: false
failSwapOn: false
maxPods: 600
cgroupRoot: ${of.cgroupRoot}
podLogsDir: ${of.dir}/pod-logs
volumePluginDir: ${of.dir}/volume-plugins
address: 127.0.0.1
port: ${freePort()}
healthzPort: 0
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
makeIPTablesUtilChains: false
featureGates: {KubeletInUserNamespace: true} # leaves this machine's kernel settings alone
evictionHard: {memory.available: 1Mi, nodefs.available: 1%, imagefs.available: 1%}
`;

let nextPort = 24_000 + (process.pid % 500) * 8;
export const freePort = (): number => nextPort++;
