// Real kube-apiserver and etcd as processes of a test, with the scheduler and the controller manager beside them where
// they are at hand, and the little a node needs of controllers done by the harness where they are not.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ServedRequest } from '../../src/devcluster/api/api-server.ts';
import { kubeconfig } from '../../src/devcluster/api/pki/kubeconfig.ts';
import { openPki, type ClusterPki } from '../../src/devcluster/api/pki/pki.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Validity } from '../../src/lib/x509/certificate.ts';
import type { TestApiServer } from './api-server.ts';
import { readAuditLog } from './audit-log.ts';
import { issueClientPem } from './client-certificate.ts';
import { connectClient } from './connect-client.ts';
import {
  apiServerFlags,
  AUDIT_POLICY,
  controllerManagerFlags,
  etcdFlags,
  schedulerFlags,
  type Assets,
  type Ports,
} from './real-assets.ts';
import { StandInControllers } from './stand-in-controllers.ts';
import { freePort } from './ports.ts';
import { timePasses } from './until.ts';

const NAMES = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
const READY_WITHIN_MS = 240_000;
const STOP_WITHIN_MS = 20_000;

export async function startRealApiServer(dir: string, assets: Assets): Promise<TestApiServer> {
  mkdirSync(dir, { recursive: true });
  const pki = await openPki(systemClock, {
    directory: join(dir, 'pki'),
    dnsNames: NAMES,
    ipAddresses: ['127.0.0.1', '10.96.0.1'],
  });
  const publicKey = pki.tokenPublicKey.export({ type: 'spki', format: 'pem' });
  writeFileSync(join(dir, 'pki', 'sa.pub'), publicKey);
  writeFileSync(join(dir, 'audit-policy.yaml'), AUDIT_POLICY);
  const [etcdClient, etcdPeer, api] = await Promise.all([freePort(), freePort(), freePort()]);
  const server = new RealApiServer(dir, assets, pki, { etcdClient, etcdPeer, api });
  server.writeKubeconfigs();
  await server.start();
  return server;
}

class RealApiServer implements TestApiServer {
  readonly kind = 'real';
  readonly url: string;
  readonly port: number;
  readonly caPem: string;
  readonly caPath: string;
  readonly adminKubeconfigPath: string;
  readonly hasControllers: boolean;
  readonly #dir: string;
  readonly #assets: Assets;
  readonly #pki: ClusterPki;
  readonly #ports: Ports;
  /** In start order. */
  #programs: Program[] = [];
  readonly #starts: { readonly fromMs: number; readyMs: number }[] = [];
  #standIn: StandInControllers | undefined;

  constructor(dir: string, assets: Assets, pki: ClusterPki, ports: Ports) {
    this.#dir = dir;
    this.#assets = assets;
    this.#pki = pki;
    this.#ports = ports;
    this.port = ports.api;
    this.url = `https://127.0.0.1:${ports.api}`;
    this.caPem = pki.caPem;
    this.caPath = join(dir, 'pki', 'ca.crt');
    this.adminKubeconfigPath = join(dir, 'admin.kubeconfig');
    this.hasControllers = assets.scheduler !== undefined && assets.controllerManager !== undefined;
  }

  writeKubeconfigs(): void {
    const write = (name: string, user: string, groups: readonly string[]): void =>
      writeFileSync(join(this.#dir, `${name}.kubeconfig`), this.kubeconfig(user, groups), { mode: 0o600 });
    write('admin', 'kubernetes-admin', ['system:masters']);
    write('scheduler', 'system:kube-scheduler', []);
    write('controller-manager', 'system:kube-controller-manager', []);
  }

  kubeconfig(user: string, groups: readonly string[] = []): string {
    const credential = this.#pki.issueClient({ commonName: user, organizations: groups });
    return kubeconfig(this.url, this.caPem, { name: user, credential });
  }

  nodeKubeconfig(name: string): string {
    return this.kubeconfig(`system:node:${name}`, ['system:nodes']);
  }

  issueClient(user: string, groups: readonly string[], validity: Validity): string {
    return issueClientPem(join(this.#dir, 'pki'), { commonName: user, organizations: groups }, validity);
  }

  wasStarting(atMs: number): boolean {
    return this.#starts.some(({ fromMs, readyMs }) => atMs >= fromMs && atMs <= readyMs);
  }

  served(): Promise<readonly ServedRequest[]> {
    return readAuditLog(join(this.#dir, 'audit.log'));
  }

  async start(): Promise<void> {
    if (this.#programs.length > 0) return;
    const start = { fromMs: Date.now(), readyMs: Infinity };
    this.#starts.push(start);
    const { etcd, apiServer, scheduler, controllerManager } = this.#assets;
    try {
      this.#run(etcd, etcdFlags(this.#dir, this.#ports));
      const api = this.#run(apiServer, apiServerFlags(this.#dir, this.#ports));
      const admin = await connectClient(this.adminKubeconfigPath);
      await this.#ready(api, () => admin.text('/readyz', new AbortController().signal));
      start.readyMs = Date.now();
      if (scheduler !== undefined) this.#run(scheduler, schedulerFlags(this.#dir));
      if (controllerManager !== undefined) this.#run(controllerManager, controllerManagerFlags(this.#dir));
      this.#standIn = new StandInControllers(admin, this.#pki, { signs: controllerManager === undefined });
      await this.#standIn.start();
    } catch (err) {
      await this.stop();
      throw err;
    }
  }

  async stop(): Promise<void> {
    await this.#standIn?.stop();
    this.#standIn = undefined;
    for (const program of this.#programs.splice(0).reverse()) await program.stop();
  }

  #run(path: string, flags: readonly string[]): Program {
    const program = new Program(path, flags, this.#dir);
    this.#programs.push(program);
    return program;
  }

  async #ready(api: Program, ask: () => Promise<string>): Promise<void> {
    const end = performance.now() + READY_WITHIN_MS;
    let last: unknown;
    while (performance.now() < end) {
      for (const program of this.#programs) await program.mustRun();
      try {
        await ask();
        return;
      } catch (err) {
        last = err;
      }
      await timePasses(100, 'another instant');
    }
    throw new Error(`kube-apiserver is not ready after ${READY_WITHIN_MS} ms: ${await api.lastOutput()}`, {
      cause: last,
    });
  }
}

/** A program of the control plane, with its output in `<name>.log`. */
class Program {
  readonly #name: string;
  readonly #log: string;
  readonly #child: ChildProcess;
  #failure: Error | undefined;

  constructor(path: string, flags: readonly string[], dir: string) {
    this.#name = path.split('/').at(-1) ?? path;
    this.#log = join(dir, `${this.#name}.log`);
    const out = openSync(this.#log, 'a');
    this.#child = spawn(path, flags, { stdio: ['ignore', out, out] });
    this.#child.once('error', (err) => (this.#failure = err));
    closeSync(out);
  }

  async lastOutput(): Promise<string> {
    return (await readFile(this.#log, 'utf8').catch(() => '')).slice(-2000);
  }

  async mustRun(): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (this.#failure !== undefined) throw new Error(`${this.#name} cannot be started`, { cause: this.#failure });
    if (exitCode === null && signalCode === null) return;
    throw new Error(`${this.#name} ended (${exitCode ?? signalCode}): ${await this.lastOutput()}`);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const hard = systemClock.after(STOP_WITHIN_MS, () => child.kill('SIGKILL'));
    await gone;
    hard.cancel();
  }
}
