// The process that owns the others: `supervisor.ts DIRECTORY`. Starts containerd, API server and CSI driver, then the kubelet;
// starts again whatever ends; on SIGTERM stops them in order and takes the pods away.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openCgroups } from '../../host/cgroups/open.ts';
import { writeFileAtomic } from '../../lib/atomic-file.ts';
import { systemClock, type Clock } from '../../lib/clock.ts';
import { formatText, LeveledLogger, type Logger } from '../../lib/logger.ts';
import { messageOf } from '../../lib/errors.ts';
import { Child, type ChildSpec } from './child.ts';
import { apiIsReady } from './client.ts';
import { kubeletArguments, kubeletConfig } from './kubelet-files.ts';
import { findProgram } from './machine.ts';
import { startTimeOf } from './own-processes.ts';
import { pathsBelow, type Paths } from './paths.ts';
import { makeBridge, RuntimeClient, writeRuntimeFiles } from './runtime.ts';
import { DNS_PORT } from '../services/dns-server.ts';
import { isFree } from './ports.ts';
import { readSettings, type Settings } from './settings.ts';
import { endLeftChildren } from './state.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');

export type SupervisorState = {
  readonly pid: number;
  readonly startTime: string;
  /** Wall time; what the node said before is from an earlier life. */
  readonly startedMs: number;
  readonly phase: 'starting' | 'running' | 'stopping';
  readonly children: Readonly<Record<string, { pid: number | undefined; restarts: number }>>;
};

class Supervisor {
  readonly #paths: Paths;
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #runtime: RuntimeClient;
  readonly #children = new Map<string, Child>();
  #phase: SupervisorState['phase'] = 'starting';
  #writing: Promise<void> = Promise.resolve();
  #startTime = '';
  readonly #startedMs: number;

  constructor(clock: Clock, log: Logger, paths: Paths, settings: Settings) {
    this.#clock = clock;
    this.#log = log;
    this.#paths = paths;
    this.#settings = settings;
    this.#runtime = new RuntimeClient(clock, paths);
    this.#startedMs = clock.now();
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#startTime = (await startTimeOf(process.pid)) ?? '';
    // A supervisor that was killed leaves its children behind; they are replaced, pods run on.
    await endLeftChildren(this.#paths, 5000);
    await this.#prepare(signal);
    const kubelet = new AbortController();
    const rest = new AbortController();
    const first = [this.#containerd(), this.#api(), this.#csiDriver()];
    const running = first.map((spec) => this.#start(spec, rest.signal));
    let kubeletRun: Promise<void> = Promise.resolve();
    if (await this.#basicsReady(signal)) {
      kubeletRun = this.#start(this.#kubelet(), kubelet.signal);
      this.#setPhase('running');
    }
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
    this.#setPhase('stopping');
    kubelet.abort();
    await kubeletRun;
    await this.#removePods();
    rest.abort();
    await Promise.all(running);
    this.#runtime.close();
    await this.#writing;
    await rm(this.#paths.supervisor, { force: true });
  }

  async #prepare(signal: AbortSignal): Promise<void> {
    await writeRuntimeFiles(this.#paths, this.#settings);
    await makeBridge(this.#settings);
    const withDns = await isFree(this.#settings.network.gateway, DNS_PORT);
    if (!withDns) this.#log.warn('another program answers DNS on this machine, so pods get no names of services');
    await writeFileAtomic(this.#paths.kubeletConfig, kubeletConfig(this.#paths, this.#settings, withDns), 0o600);
    const cgroups = await openCgroups(this.#clock, 'cgroupfs');
    await cgroups.create(this.#settings.cgroupRoot, {}, signal);
  }

  async #basicsReady(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      try {
        if ((await this.#runtime.isReady(signal)) && (await apiIsReady(this.#paths))) {
          await this.#runtime.ensureImages(signal);
          return true;
        }
      } catch (err) {
        if (!signal.aborted) this.#log.warn('not ready yet', { err });
      }
      await this.#clock.sleep(50, signal);
    }
    return false;
  }

  async #removePods(): Promise<void> {
    const patience = new AbortController();
    const timer = this.#clock.after(40_000, () => patience.abort());
    try {
      await this.#runtime.removePods(patience.signal);
    } catch (err) {
      this.#log.warn('pods were left to the cleanup', { err });
    } finally {
      timer.cancel();
    }
  }

  #start(spec: ChildSpec, signal: AbortSignal): Promise<void> {
    const child = new Child({ clock: this.#clock, log: this.#log, changed: () => this.#save() }, spec);
    this.#children.set(spec.name, child);
    return child.run(signal);
  }

  #setPhase(phase: SupervisorState['phase']): void {
    this.#phase = phase;
    this.#log.info('phase', { phase });
    this.#save();
  }

  #save(): void {
    const children = Object.fromEntries(
      [...this.#children].map(([name, c]) => [name, { pid: c.pid, restarts: c.restarts }]),
    );
    const state: SupervisorState = {
      pid: process.pid,
      startTime: this.#startTime,
      startedMs: this.#startedMs,
      phase: this.#phase,
      children,
    };
    this.#writing = this.#writing
      .then(() => writeFileAtomic(this.#paths.supervisor, JSON.stringify(state), 0o600))
      .catch((err: unknown) => this.#log.error('state could not be written', { err }));
  }

  #containerd(): ChildSpec {
    const path = `${process.env['PATH'] ?? ''}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin`;
    return {
      name: 'containerd',
      command: findProgram('containerd') ?? 'containerd',
      args: ['--config', this.#paths.containerdConfig],
      logPath: this.#paths.log('containerd'),
      env: { ...process.env, PATH: path, TMPDIR: join(this.#paths.containerd, 'tmp') },
      patienceMs: 10_000,
    };
  }

  #api(): ChildSpec {
    return {
      name: 'api-server',
      command: process.execPath,
      args: [join(import.meta.dirname, 'api-process.ts'), this.#paths.directory],
      logPath: this.#paths.log('api-server'),
      patienceMs: 5000,
    };
  }

  #csiDriver(): ChildSpec {
    const flags = [
      `--node-id=${this.#settings.nodeName}`,
      `--directory=${this.#paths.csiVolumes}`,
      `--endpoint=${this.#paths.csiSocket}`,
      `--registry=${this.#paths.pluginsRegistry}`,
    ];
    return {
      name: 'csi-driver',
      command: process.execPath,
      args: [join(import.meta.dirname, '..', 'csi-hostpath', 'main.ts'), ...flags],
      logPath: this.#paths.log('csi-driver'),
      patienceMs: 5000,
    };
  }

  #kubelet(): ChildSpec {
    return {
      name: 'kubelet',
      command: join(ROOT, 'bin', 'kubelet'),
      args: kubeletArguments(this.#paths, this.#settings),
      logPath: this.#paths.log('kubelet'),
      patienceMs: 15_000,
    };
  }
}

async function main(directory: string): Promise<void> {
  const paths = pathsBelow(directory);
  const settings = await readSettings(paths);
  if (settings === undefined) throw new Error(`no settings in ${directory}`);
  const sink = {
    write: (line: Parameters<typeof formatText>[0]): void => void process.stderr.write(formatText(line, process.pid)),
  };
  const log = new LeveledLogger(systemClock, sink, () => 2).child({ component: 'supervisor' });
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => stop.abort());
  await new Supervisor(systemClock, log, paths, settings).run(stop.signal);
}

main(process.argv[2] ?? '').catch((err: unknown) => {
  process.stderr.write(`supervisor: ${messageOf(err)}\n`);
  process.exitCode = 1;
});
