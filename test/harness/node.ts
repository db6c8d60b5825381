// A whole node for tests: private containerd, embedded API server, and the kubelet as a process of its own, with a
// recording of every CRI call between kubelet and runtime. Everything is below one temporary folder.
import { spawn, type ChildProcess } from 'node:child_process';
import { appendFileSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startApiServer, type RunningApiServer } from '../../src/devcluster/start-api-server.ts';
import { connectApi } from '../../src/kube/connect.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { resolveKubeconfig } from '../../src/kube/kubeconfig.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { BUSYBOX_IMAGE, startContainerd, type PrivateContainerd } from './containerd.ts';
import type { ContainerdVersion } from './containerd-binaries.ts';
import { CriProxy } from '../faults/cri-proxy.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';

export const NODE_NAME = 'n1';
const KUBELET = join(import.meta.dirname, '..', '..', 'bin', 'kubelet');

export type NodeOptions = {
  readonly containerd?: ContainerdVersion;
  /** Without: a standalone node. */
  readonly cluster?: boolean;
  /** Listen on the node's own address, where the API server looks for it, instead of on the loopback interface. */
  readonly reachable?: boolean;
  /** Merged into the KubeletConfiguration, as YAML lines. */
  readonly config?: string;
  readonly flags?: readonly string[];
};

export interface TestNode {
  readonly dir: string;
  readonly containerd: PrivateContainerd;
  readonly api: RunningApiServer;
  readonly client: KubeClient;
  readonly cri: CriProxy;
  readonly manifests: string;
  readonly cgroupRoot: string;
  readonly healthzPort: number;
  readonly port: number;
  readonly kubelet: KubeletProcess;
  log(): Promise<string>;
  stop(): Promise<void>;
}

const NEVER = new AbortController().signal;
let nextPort = 21_000 + (process.pid % 500) * 20;

export async function startNode(options: NodeOptions = {}): Promise<TestNode> {
  const dir = await mkdtemp('/tmp/kts-node-');
  const containerd = await startContainerd({ version: options.containerd ?? '2.1' });
  await containerd.importImage(BUSYBOX_IMAGE);
  const api = await startApiServer({ dir: join(dir, 'api'), port: 0 });
  const cri = new CriProxy(containerd.socketPath);
  await cri.start();
  const cgroups = await openCgroups(systemClock, 'cgroupfs');
  const cgroupRoot = `/kts-${process.pid}-${nextPort}`;
  await cgroups.create(cgroupRoot, {}, NEVER);
  const manifests = join(dir, 'manifests');
  mkdirSync(manifests);
  const port = nextPort++;
  const healthzPort = nextPort++;
  writeFileSync(
    join(dir, 'config.yaml'),
    configText({
      dir,
      endpoint: cri.endpoint,
      manifests,
      port,
      healthzPort,
      cgroupRoot,
      clientCa: api.caPath,
      address: options.reachable === true ? ownAddress() : '127.0.0.1',
      extra: options.config ?? '',
    }),
  );
  writeFileSync(join(dir, 'kubeconfig'), api.nodeKubeconfig(NODE_NAME), { mode: 0o600 });
  const kubelet = new KubeletProcess(dir, [
    ...(options.cluster === false ? [] : ['--kubeconfig', join(dir, 'kubeconfig')]),
    ...(options.flags ?? []),
  ]);
  await kubelet.start(healthzPort);
  const access = await resolveKubeconfig(await readFile(api.adminKubeconfigPath, 'utf8'), api.adminKubeconfigPath);
  const { main: client } = connectApi({ clock: systemClock, log: silentLogger }, access, {
    version: 'test',
    architecture: 'amd64',
    qps: 0,
    burst: 0,
    eventQps: 0,
    eventBurst: 0,
    leaseDurationSeconds: 40,
  });
  return {
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
    log: () => readFile(join(dir, 'kubelet.log'), 'utf8'),
    async stop() {
      await kubelet.kill('SIGTERM');
      await cri.stop();
      await api.stop();
      await containerd.stop();
      await cgroups.destroy(cgroupRoot, NEVER);
      await rm(dir, { recursive: true, force: true });
    },
  };
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
  readonly #flags: readonly string[];
  #child: ChildProcess | undefined;

  constructor(dir: string, flags: readonly string[]) {
    this.#dir = dir;
    this.#flags = flags;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
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
    ];
    this.#child = spawn(KUBELET, [...args, '--hostname-override', NODE_NAME, '-v=4', ...this.#flags], {
      stdio: ['ignore', out, out],
    });
    if (healthzPort === undefined) return;
    for (let i = 0; i < 200; i++) {
      if (this.#child.exitCode !== null)
        throw new Error(`kubelet ended: ${await readFile(join(this.#dir, 'kubelet.log'), 'utf8')}`);
      const up = await fetch(`http://127.0.0.1:${healthzPort}/healthz`).then(
        (r) => r.ok,
        () => false,
      );
      if (up) return;
      await sleep(50);
    }
    throw new Error('kubelet did not answer on its health port');
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await gone;
  }
}

/** Polls until `check` gives something; the error says what was waited for and what was seen last. */
export async function until<T>(
  what: string,
  check: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 30_000,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  let last: unknown;
  while (performance.now() < end) {
    try {
      const got = await check();
      if (got !== undefined && got !== false) return got;
      last = got;
    } catch (err) {
      last = err;
    }
    await sleep(25);
  }
  throw new Error(
    `timed out waiting until ${what}; last: ${last instanceof Error ? last.message : JSON.stringify(last)}`,
  );
}
