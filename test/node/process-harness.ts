// The kubelet's program run by hand, on a private runtime: for tests of the process rather than of the node.
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Cgroups } from '../../src/host/cgroups/cgroups.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { startContainerd, type PrivateRuntime } from '../harness/containerd.ts';
import { removeFolder, temporaryFolder } from '../harness/temporary-folder.ts';
import { untilSeen } from '../harness/until.ts';

const PROGRAM = join(import.meta.dirname, '..', '..', 'bin', 'kubelet');
const never = new AbortController().signal;

export type RunningProgram = {
  readonly pid: number;
  /** All it has printed. */
  output(): string;
  says(what: RegExp, withinMs?: number): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Its exit code; one that goes on for longer than this is an error. */
  ends(withinMs?: number): Promise<number | null>;
};

/** A standalone machine on which the program is started as often as a test likes. */
export class Machine {
  readonly dir: string;
  readonly containerd: PrivateRuntime;
  readonly manifests: string;
  readonly #cgroups: Cgroups;
  readonly #cgroupRoot: string;
  readonly #running = new Set<RunningProgram>();

  private constructor(dir: string, containerd: PrivateRuntime, cgroups: Cgroups) {
    this.dir = dir;
    this.containerd = containerd;
    this.manifests = join(dir, 'manifests');
    this.#cgroups = cgroups;
    this.#cgroupRoot = `/kts-process-${process.pid}`;
  }

  static async open(): Promise<Machine> {
    const dir = temporaryFolder('kts-process-');
    const cgroups = await openCgroups(systemClock, 'cgroupfs');
    const machine = new Machine(dir, await startContainerd(), cgroups);
    await cgroups.create(machine.#cgroupRoot, {}, never);
    mkdirSync(machine.manifests);
    return machine;
  }

  async close(): Promise<void> {
    for (const program of this.#running) program.signal('SIGKILL');
    await Promise.all([...this.#running].map((p) => p.ends()));
    await this.containerd.stop();
    await this.#cgroups.destroy(this.#cgroupRoot, never);
    removeFolder(this.dir);
  }

  /** YAML lines; a later one of the same name replaces an earlier. */
  writeConfig(fields: Readonly<Record<string, unknown>> = {}): void {
    const all = {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      staticPodPath: this.manifests,
      containerRuntimeEndpoint: this.containerd.endpoint,
      failCgroupV1: false,
      failSwapOn: false,
      cgroupRoot: this.#cgroupRoot,
      podLogsDir: join(this.dir, 'pod-logs'),
      volumePluginDir: join(this.dir, 'volume-plugins'),
      address: '127.0.0.1',
      enableServer: false,
      healthzPort: 0,
      makeIPTablesUtilChains: false,
      featureGates: { KubeletInUserNamespace: true },
      authentication: { anonymous: { enabled: false }, webhook: { enabled: false } },
      authorization: { mode: 'AlwaysAllow' },
      ...fields,
    };
    writeFileSync(join(this.dir, 'config.yaml'), JSON.stringify(all, undefined, 1));
  }

  start(flags: readonly string[] = [], env: NodeJS.ProcessEnv = {}): RunningProgram {
    const places = ['--config', join(this.dir, 'config.yaml'), '--root-dir', join(this.dir, 'kubelet')];
    const args = [...places, '--cert-dir', join(this.dir, 'pki'), '--hostname-override', 'n1', '-v=4', ...flags];
    const child = spawn(PROGRAM, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (text += data.toString()));
    let code: number | null | undefined;
    const said = (err: unknown): never => {
      throw new Error(`${String(err)}\n${text.slice(-3000)}`);
    };
    const program: RunningProgram = {
      pid: child.pid ?? 0,
      output: () => text,
      says: async (what, withinMs) => {
        await untilSeen(
          `it says ${String(what)}`,
          () => text,
          (seen) => what.test(seen),
          withinMs,
        ).catch(said);
      },
      signal: (name) => void child.kill(name),
      ends: async (withinMs) => {
        await untilSeen(
          'it has ended',
          () => code,
          (seen) => seen !== undefined,
          withinMs,
        ).catch(said);
        return code ?? null;
      },
    };
    this.#running.add(program);
    child.once('close', (status) => {
      code = status;
      this.#running.delete(program);
    });
    return program;
  }
}

/** A port somebody else has. */
export async function takenPort(): Promise<{ readonly port: number; free(): void }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    free: () => void server.close(),
  };
}
