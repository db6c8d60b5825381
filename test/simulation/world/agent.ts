// The agent's process: the real composition root, started, told to stop, killed, and started again by its supervisor.
import { readCommand } from '../../../src/config/configure.ts';
import { ConfigUpdates } from '../../../src/config/updates.ts';
import { machineFacts } from '../../../src/host/process/host-checks.ts';
import { LogLevels } from '../../../src/host/process/log-levels.ts';
import { LogOutput } from '../../../src/host/process/log-output.ts';
import { prepareHost } from '../../../src/host/process/prepare.ts';
import { runKubelet } from '../../../src/kubelet.ts';
import { forgetWrites } from '../../../src/lib/atomic-file.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { messageOf } from '../../../src/lib/errors.ts';
import { formatText, LeveledLogger, type Line } from '../../../src/lib/logger.ts';
import type { FileTree } from '../engine/file-tree.ts';
import type { Owner, Scheduler } from '../engine/scheduler.ts';
import { putFile } from './host.ts';

export type AgentDeps = {
  readonly scheduler: Scheduler;
  readonly files: FileTree;
  /** Every line of its log. */
  readonly onLog: (text: string, severity: string) => void;
  readonly onStart: () => void;
  /** Its process is gone, whatever the reason. */
  readonly onEnd: () => void;
  /** It ended without being told to. */
  readonly onCrash: (reason: string) => void;
};

export type AgentOptions = { readonly verbosity: number; readonly config: string };

const RESTART_MS = 5000;

export class Agent {
  readonly #deps: AgentDeps;
  readonly #o: AgentOptions;
  #owner: Owner = { name: 'agent-0', alive: false };
  #stop = new AbortController();
  #starts = 0;
  #isWanted = false;
  /** Since when it has been running, by the machine's uptime. */
  startedAtMs: number | undefined;
  readyAtMs: number | undefined;

  constructor(deps: AgentDeps, options: AgentOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  install(): void {
    const { files } = this.#deps;
    files.sync(putFile(files, '/etc/kubernetes/kubelet.yaml', this.#o.config));
    files.sync(putFile(files, '/etc/kubernetes/kubeconfig', KUBECONFIG));
  }

  get isRunning(): boolean {
    return this.#owner.alive;
  }

  get starts(): number {
    return this.#starts;
  }

  start(): void {
    this.#isWanted = true;
    if (this.#owner.alive) return;
    const { scheduler } = this.#deps;
    const owner = { name: `agent-${++this.#starts}`, alive: true };
    this.#owner = owner;
    this.#stop = new AbortController();
    this.startedAtMs = scheduler.monotonic();
    this.readyAtMs = undefined;
    this.#deps.onStart();
    forgetWrites();
    scheduler.after(0, () => void this.#run(owner, this.#stop.signal), owner);
  }

  /** SIGTERM: it ends in its own time and is not started again. */
  stop(): void {
    this.#isWanted = false;
    const { scheduler } = this.#deps;
    const controller = this.#stop;
    if (this.#owner.alive) scheduler.after(0, () => controller.abort(new Error('stopped by SIGTERM')), this.#owner);
  }

  /** SIGKILL: from this moment on nothing of it runs any more. */
  kill(): void {
    this.#isWanted = false;
    this.#end();
  }

  crash(reason: string): void {
    if (!this.#owner.alive) return;
    this.#deps.onCrash(reason);
    this.#end();
    this.#later();
  }

  #end(): void {
    this.#owner.alive = false;
    this.startedAtMs = undefined;
    this.readyAtMs = undefined;
    this.#deps.files.closeAll();
    this.#deps.onEnd();
  }

  #later(): void {
    const { scheduler } = this.#deps;
    scheduler.after(RESTART_MS, () => this.#isWanted && this.start(), scheduler.world);
  }

  async #run(owner: Owner, signal: AbortSignal): Promise<void> {
    let reason = 'it returned';
    try {
      await this.#main(signal);
    } catch (err) {
      reason = messageOf(err);
    }
    if (!owner.alive) return;
    const wasTold = signal.aborted;
    if (!wasTold) this.#deps.onCrash(reason);
    this.#end();
    if (this.#isWanted) this.#later();
  }

  async #main(signal: AbortSignal): Promise<void> {
    const argv = [
      '--config=/etc/kubernetes/kubelet.yaml',
      '--kubeconfig=/etc/kubernetes/kubeconfig',
      '--hostname-override=n1',
      '--node-ip=10.0.0.1',
      '--node-page-port=0',
      `-v=${this.#o.verbosity}`,
    ];
    const command = await readCommand(argv, machineFacts);
    if (command.do !== 'run') throw new Error('the agent was not told to run');
    const { config, published, flags, gates, flagValues } = command.configuration;
    const { onLog, scheduler } = this.#deps;
    const levels = new LogLevels(config.logging.verbosity, config.logging.vmodule);
    const sink = { write: (line: Line) => onLog(formatText(line, process.pid), line.severity) };
    const log = new LeveledLogger(systemClock, sink, levels.of);
    prepareHost(config, flags, gates, log);
    await runKubelet(
      {
        config,
        flags,
        flagValues,
        gates,
        log,
        logLevels: levels,
        logOutput: new LogOutput(systemClock, OUTPUT, (_fd, data) => data.length),
        clock: systemClock,
        systemd: { watchdogMs: undefined, notify: () => (this.readyAtMs ??= scheduler.monotonic()) },
        updates: new ConfigUpdates(config, published),
        localHealth: { pings: 0 },
      },
      signal,
    );
  }
}

const OUTPUT = { format: 'text', splitStream: false, infoBufferBytes: 0, pid: 4242 } as const;

const KUBECONFIG = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://api:6443", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: simulated}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`;

const SHUTDOWN = `shutdownGracePeriod: 60s
shutdownGracePeriodCriticalPods: 20s
`;

const PINNING = `cpuManagerPolicy: static
reservedSystemCPUs: "0"
`;

export const agentConfig = (
  endpoint: string,
  also: readonly string[],
  more: string,
): string => `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /etc/kubernetes/manifests
containerRuntimeEndpoint: ${endpoint}
failSwapOn: false
enableServer: false
healthzPort: 0
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
makeIPTablesUtilChains: false
maxPods: 250
containerLogMonitorInterval: 5m
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
evictionHard: {memory.available: 1Mi, nodefs.available: 1%, imagefs.available: 1%}
${also.includes('devices') || also.includes('memory') ? PINNING : ''}${also.includes('shutdown') ? SHUTDOWN : ''}${more}`;
