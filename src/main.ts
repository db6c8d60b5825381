// The process: arguments in, exit code out. The only place that touches process.exit and process.on. The first signal
// stops everything in order, the second ends the process at once.
import { readFile } from 'node:fs/promises';
import { readCommand, type Command, type Configuration } from './config/configure.ts';
import { toVersionedJson } from './config/convert.ts';
import { helpText } from './config/help.ts';
import { maskConfig } from './config/mask.ts';
import { ConfigUpdates } from './config/updates.ts';
import { KUBELET_VERSION, versionText } from './lib/version.ts';
import { quantity, toNumber } from './core/quantity.ts';
import { acquireLockFile, lockContended } from './host/process/lock-file.ts';
import { LogLevels } from './host/process/log-levels.ts';
import { LogOutput } from './host/process/log-output.ts';
import { machineFacts } from './host/process/host-checks.ts';
import { prepareHost } from './host/process/prepare.ts';
import { nameProcess } from './host/process/process-name.ts';
import { sourceTrace } from './host/process/source-trace.ts';
import { systemdOf, type Systemd } from './host/process/sd-notify.ts';
import type { KubeletOptions } from './kubelet.ts';
import { nextTurn, systemClock, type Clock } from './lib/clock.ts';
import { isFault, KubeletError, messageOf } from './lib/errors.ts';
import { LeveledLogger, type Logger } from './lib/logger.ts';
import { runEvery } from './lib/loop.ts';
import { HealthzServer } from './server/healthz.ts';

export type MainIo = {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly columns: number;
  readonly rows?: number;
  readonly isTerminal?: boolean;
};

/** What the command line asks for; undefined after a complaint about it was printed. */
async function understand(argv: readonly string[], io: MainIo): Promise<Command | undefined> {
  try {
    return await readCommand(argv, machineFacts);
  } catch (err) {
    io.err(complaint(err));
    return undefined;
  }
}

/** One message for a person: each problem on its own line, never a stack. */
function complaint(err: unknown): string {
  const problems = isFault(err) ? err.detail['problems'] : undefined;
  if (!Array.isArray(problems) || problems.length < 2) return `kubelet: ${messageOf(err)}\n`;
  const { prefix, suffix } = (err as KubeletError).detail;
  const head = `${String(prefix).replace(/(, error)?: $/, '')}${String(suffix)}`;
  return `kubelet: ${head}\n${problems.map((problem) => `  - ${String(problem)}\n`).join('')}`;
}

/** Runs one command to its end and gives the exit code. */
export async function main(
  argv: readonly string[],
  io: MainIo,
  signals: Signals,
  load: LoadKubelet = loadKubelet,
): Promise<number> {
  if (argv[0] === 'node') return nodeTool(argv.slice(1), io, signals);
  const command = await understand(argv, io);
  if (command === undefined) return 1;
  if (command.do === 'help') io.out(helpText(io.columns));
  else if (command.do === 'version') io.out(versionText(command.raw));
  else return new Process(argv, command.configuration, signals, load).run();
  return 0;
}

/** The command line of a node. It is another program behind the same name, and loads nothing of the kubelet. */
async function nodeTool(argv: readonly string[], io: MainIo, signals: Signals): Promise<number> {
  const stop = new AbortController();
  signals.onStop(() => stop.abort());
  const { nodeCommand } = await import('./cli/node-command.ts');
  return nodeCommand(argv, { clock: systemClock, io: { rows: 24, isTerminal: false, ...io } }, stop.signal);
}

/** Brings in the kubelet itself, which is loaded only once it is clear that it will run. */
export type LoadKubelet = (signal: AbortSignal) => Promise<{
  runKubelet: (options: KubeletOptions, signal: AbortSignal) => Promise<void>;
}>;

/** In slices, so that the health port answers between them, at once to whoever already waits there. */
const loadKubelet: LoadKubelet = async (signal) => {
  await systemClock.sleep(8, signal);
  for (const slice of [
    () => import('./assembly/runtime-edge.ts'),
    () => import('./images/create.ts'),
    () => import('./sources/create.ts'),
    () => import('./assembly/volumes.ts'),
    () => import('./assembly/pod-life.ts'),
  ]) {
    await nextTurn();
    await slice();
  }
  await nextTurn();
  return import('./kubelet.ts');
};

/** The signals of the operating system, as callbacks. */
export type Signals = {
  readonly onStop: (fn: (name: string) => void) => void;
  readonly onReload: (fn: () => void) => void;
  readonly onCrash: (fn: (err: unknown) => void) => void;
  readonly exitNow: (code: number) => void;
};

class Process {
  readonly #argv: readonly string[];
  readonly #signals: Signals;
  readonly #load: LoadKubelet;
  readonly #clock: Clock = systemClock;
  readonly #stop = new AbortController();
  readonly #levels: LogLevels;
  readonly #output: LogOutput;
  readonly #log: Logger;
  readonly #systemd: Systemd;
  readonly #updates: ConfigUpdates;
  readonly #configuration: Configuration;

  constructor(argv: readonly string[], configuration: Configuration, signals: Signals, load: LoadKubelet) {
    const { logging } = configuration.config;
    const stream = logging.options[logging.format];
    this.#argv = argv;
    this.#configuration = configuration;
    this.#signals = signals;
    this.#load = load;
    this.#levels = new LogLevels(logging.verbosity, logging.vmodule);
    this.#output = new LogOutput(this.#clock, {
      format: logging.format,
      splitStream: stream.splitStream,
      infoBufferBytes: toNumber(quantity(stream.infoBufferSize)),
      pid: process.pid,
    });
    this.#log = new LeveledLogger(this.#clock, this.#output, this.#levels.of);
    this.#systemd = systemdOf(process.env, process.pid, this.#log);
    this.#updates = new ConfigUpdates(configuration.config, configuration.published);
  }

  async run(): Promise<number> {
    this.#listen();
    this.#announce();
    const flushing = new AbortController();
    const flush = this.#flushLoop(flushing.signal);
    try {
      await this.#runLocked();
      this.#log.info('kubelet stopped');
      return 0;
    } catch (err) {
      if (this.#stop.signal.aborted && err === this.#stop.signal.reason) return 0;
      this.#log.error('kubelet failed', { err });
      return 1;
    } finally {
      flushing.abort();
      await flush;
      this.#output.flush();
    }
  }

  #announce(): void {
    const { published, flagValues, warnings } = this.#configuration;
    const log = this.#log;
    for (const warning of warnings) log.warn('configuration warning', { warning });
    log.info('kubelet starts', { version: KUBELET_VERSION, node: process.version, pid: process.pid });
    if (log.enabled(1)) for (const [name, value] of flagValues) log.info('FLAG', { name, value });
    if (log.enabled(2))
      log.info('configuration in force', { config: JSON.stringify(maskConfig(toVersionedJson(published))) });
    if (process.getuid?.() !== 0) log.error('kubelet running with insufficient permissions: it needs to be root');
  }

  async #runLocked(): Promise<void> {
    const { flags } = this.#configuration;
    const stop = this.#stop.signal;
    if (flags.lockFile === '') return this.#runKubelet();
    const lock = await acquireLockFile(flags.lockFile, this.#clock, this.#log, stop);
    const contention = flags.exitOnLockContention ? this.#leaveOnContention(flags.lockFile) : undefined;
    try {
      await this.#runKubelet();
    } finally {
      this.#stop.abort();
      await contention;
      lock.release();
    }
  }

  async #leaveOnContention(path: string): Promise<void> {
    if (!(await lockContended(path, this.#clock, this.#stop.signal))) return;
    this.#log.info('somebody else wants the lock file, leaving', { path });
    this.#stop.abort(new KubeletError('cancelled', 'the lock file is contended'));
  }

  async #runKubelet(): Promise<void> {
    const { config, flags, gates, flagValues } = this.#configuration;
    prepareHost(config, flags, gates, this.#log);
    await this.#storeEmbeddedCertificate();
    await this.#besideHealthz(async (signal, localHealth) => {
      // Loaded only now: help, versions and complaints about the input need none of it, and health answers meanwhile.
      const { runKubelet } = await this.#load(signal);
      await runKubelet(
        {
          config,
          flags,
          flagValues,
          gates,
          log: this.#log,
          logLevels: this.#levels,
          logOutput: this.#output,
          clock: this.#clock,
          systemd: this.#systemd,
          updates: this.#updates,
          localHealth,
        },
        signal,
      );
    });
  }

  /** Before the health port answers: from then on kubeadm may look for the stored certificate. */
  async #storeEmbeddedCertificate(): Promise<void> {
    const { config, flags } = this.#configuration;
    if (!config.rotateCertificates || flags.kubeconfig === '') return;
    const text = await readFile(flags.kubeconfig, 'utf8').catch(() => ''); // reported when it is used
    if (!text.includes('client-certificate-data')) return;
    const { storeEmbeddedCertificate } = await import('./security/given-certificate.ts');
    await storeEmbeddedCertificate({ clock: this.#clock, log: this.#log }, flags);
  }

  /** The health port answers before the rest is even loaded, and until all of it has stopped. */
  async #besideHealthz(work: (signal: AbortSignal, port: HealthzServer) => Promise<void>): Promise<void> {
    const { healthzBindAddress: address, healthzPort: port } = this.#configuration.config;
    const log = this.#log.child({ component: 'healthz' });
    const over = new AbortController();
    const server = new HealthzServer({ clock: this.#clock, log }, { address, port });
    const health = port === 0 ? undefined : server.run(over.signal);
    if (health !== undefined) await server.tried;
    try {
      await work(this.#stop.signal, server);
    } finally {
      over.abort();
      await health;
    }
  }

  #flushLoop(signal: AbortSignal): Promise<void> {
    const everyMs = Math.max(100, this.#configuration.config.logging.flushFrequencyMs);
    return runEvery(
      this.#clock,
      this.#log,
      { name: 'log-flush', everyMs, delayFirst: true },
      () => this.#output.flush(),
      signal,
    );
  }

  #listen(): void {
    this.#signals.onStop((name) => {
      if (this.#stop.signal.aborted) {
        this.#log.error('second signal, exiting at once', { signal: name });
        this.#output.flush();
        this.#signals.exitNow(1);
        return;
      }
      this.#log.info('stopping', { signal: name });
      this.#systemd.notify('STOPPING=1');
      this.#stop.abort(new KubeletError('cancelled', `stopped by ${name}`));
    });
    this.#signals.onCrash((err) => {
      this.#log.error('unexpected failure, exiting', {
        err,
        stack: err instanceof Error && err.stack !== undefined ? sourceTrace(err.stack) : undefined,
      });
      this.#output.flush();
      this.#signals.exitNow(1);
    });
    this.#signals.onReload(() => void this.#reload());
    this.#updates.subscribe(['logging.verbosity', 'logging.vmodule'], ({ logging }) =>
      this.#levels.set(logging.verbosity, logging.vmodule),
    );
  }

  async #reload(): Promise<void> {
    try {
      const command = await readCommand(this.#argv, machineFacts);
      if (command.do !== 'run') return;
      const { live, needRestart } = this.#updates.offer(command.configuration.config);
      this.#log.info('configuration read again', { applied: live.join(','), needRestart: needRestart.join(',') });
    } catch (err) {
      this.#log.error('configuration is not usable, the old one stays in force', { err });
    }
  }
}

const processSignals: Signals = {
  onStop: (fn) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => fn(name));
  },
  onReload: (fn) => void process.on('SIGHUP', fn),
  onCrash: (fn) => {
    process.on('uncaughtException', fn);
    process.on('unhandledRejection', fn);
  },
  // oxlint-disable-next-line eslint/no-restricted-properties -- this is main.ts
  exitNow: (code) => process.exit(code),
};

async function start(): Promise<void> {
  // A reader that leaves early (`kubelet --help | head`) is no failure.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  const io: MainIo = {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    columns: process.stdout.columns || 100,
    rows: process.stdout.rows || 24,
    isTerminal: process.stdout.isTTY,
  };
  const argv = process.argv.slice(2);
  if (argv[0] !== 'node') nameProcess(argv);
  const code = await main(argv, io, processSignals);
  // Whatever still holds the event loop open must not keep a stopped kubelet half alive.
  process.stdout.write('', () => process.stderr.write('', () => processSignals.exitNow(code)));
}

if (import.meta.main) void start();
