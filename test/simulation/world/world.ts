// One simulated node with everything around it: machine, runtime, API server, agent. Workloads and faults act on it through
// the few methods here; invariants look at it.
import { createHash } from 'node:crypto';
import { ContainerState } from '../../../src/cri/gen/cri.ts';
import { FakeCri } from '../../fakes/fake-cri.ts';
import type { FakeContainer } from '../../fakes/fake-state.ts';
import { FileTree } from '../engine/file-tree.ts';
import { boot, type Machine } from '../engine/machine.ts';
import { Random } from '../engine/random.ts';
import { Scheduler } from '../engine/scheduler.ts';
import { Agent, agentConfig } from './agent.ts';
import { SimApiServer } from './api-server.ts';
import { Claims } from './claims.ts';
import type { CsiDriver } from './csi-driver.ts';
import { DevicePlugin } from './device-plugin.ts';
import { Faults } from './faults.ts';
import { bootLoops } from './loop-devices.ts';
import { SimLogind } from './logind.ts';
import { StateFiles } from './state-files.ts';
import { disk } from '../platform/file-latency.ts';
import { bootHost, commandsOn, installHost, makeDirs } from './host.ts';
import { installNuma, numaConfig } from './numa.ts';
import { faultyRuntime, type RuntimeFaults } from './runtime-faults.ts';
import type { Part } from '../workload/actions.ts';
import { AT_TIMES, IMAGE } from '../workload/pods.ts';

export type WorldOptions = {
  readonly seed: number;
  /** Parts of it beyond the plain node. */
  readonly also?: readonly Part[];
  /** Of the agent's log; 0 unless somebody reads it. */
  readonly verbosity?: number;
  /** Every line of the trace, as it is made. */
  readonly onTrace?: (line: string) => void;
  readonly onLog?: (line: string) => void;
};

const LINES_AT_ONCE = 1000;
const RUNTIME_LOOK_MS = 1000;
const RUNTIME_SOCKET = '/run/containerd/containerd.sock';

export class World {
  readonly scheduler: Scheduler;
  readonly files: FileTree;
  readonly machine: Machine;
  readonly random: Random;
  readonly crashes: string[] = [];
  api!: SimApiServer;
  runtime!: FakeCri;
  runtimeFaults!: RuntimeFaults;
  agent!: Agent;
  /** Where the world has that part. */
  csi: CsiDriver | undefined;
  block: CsiDriver | undefined;
  devices: DevicePlugin | undefined;
  claims: Claims | undefined;
  logind: SimLogind | undefined;
  readonly state: StateFiles = new StateFiles(this);
  readonly faults: Faults = new Faults(this);
  /** Told of every call to the runtime. */
  onCall: (verb: string, request: unknown) => void = () => undefined;
  /** The machine has power and the runtime runs. */
  isUp = true;
  /** What is to be started again can be, whether the runtime is there or not. */
  hasPower = true;
  /** Somebody wants no new pods on the node. */
  isCordoned = false;
  readonly #o: WorldOptions;
  readonly #hash = createHash('sha256');
  readonly #answered = new Map<string, FakeContainer>();
  /** Lines that are not in the hash yet. */
  #lines: string[] = [];
  /** Times the machine was switched on. */
  boots = 0;

  private constructor(options: WorldOptions) {
    this.#o = options;
    this.scheduler = new Scheduler(options.seed);
    this.random = new Random(options.seed, 'world');
    this.files = new FileTree(
      () => this.scheduler.wall(),
      () => this.scheduler.monotonic(),
    );
    this.machine = {
      scheduler: this.scheduler,
      files: this.files,
      sockets: new Map(),
      run: commandsOn(this.files),
      onFileCall: new Set(),
      network: {
        tcp: (host) => this.#answers(host),
        http: (host, _port, path) => {
          if (!this.#answers(host)) return 'refused';
          const isBad = path === AT_TIMES && Math.floor(this.scheduler.monotonic() / 60_000) % 4 === 3;
          return { status: isBad ? 500 : 200, body: '' };
        },
        api: undefined as never,
      },
    };
  }

  /** A machine that is on, with a runtime and an API server that answer; the agent is not started yet. */
  static async create(options: WorldOptions): Promise<World> {
    const world = new World(options);
    boot(world.machine);
    Object.assign(disk, { slowness: 1, kernelMs: 0 });
    installHost(world.files);
    world.#bootHost();
    world.api = new SimApiServer();
    world.api.onServed = ({ method, path }, status) => world.trace(`api ${method} ${path} ${status}`);
    world.machine.network.api = world.api;
    world.runtime = new FakeCri({ socketPath: RUNTIME_SOCKET, recordCalls: false });
    world.runtime.pullable.add(IMAGE);
    world.runtimeFaults = faultyRuntime(world.runtime, world.scheduler, (verb, request) => {
      world.trace(`cri ${verb}`);
      world.onCall(verb, request);
    });
    const { writeLog } = world.runtime.state;
    world.runtime.state.writeLog = (container, output) => {
      try {
        writeLog.call(world.runtime.state, container, output);
      } catch {
        // A full disk loses a container's output, not the container.
      }
    };
    const started = world.runtime.start();
    await world.scheduler.runUntil(10);
    await started;
    world.agent = new Agent(
      {
        scheduler: world.scheduler,
        files: world.files,
        onLog: (line) => options.onLog?.(line),
        onStart: () => world.api.replica.newClient(),
        onEnd: () => world.logind?.agentEnded(),
        onCrash: (reason) => {
          world.crashes.push(reason);
          world.trace(`agent ended by itself: ${reason}`);
        },
      },
      {
        verbosity: options.verbosity ?? 0,
        config: agentConfig(world.runtime.endpoint, options.also ?? [], world.hasNuma ? numaConfig(options.seed) : ''),
      },
    );
    world.agent.install();
    if (options.also?.includes('devices') === true) world.devices = new DevicePlugin(world);
    if (options.also?.includes('dra') === true) world.claims = new Claims(world, options.seed);
    if (options.also?.includes('shutdown') === true) world.machine.logind = world.logind = new SimLogind(world);
    return world;
  }

  #bootHost(): void {
    bootHost(this.files, this.scheduler, `00000000-0000-4000-8000-${String(++this.boots).padStart(12, '0')}`);
    makeDirs(this.files, '/run/containerd');
    if (this.#o.also?.includes('block') === true) bootLoops(this.files);
    if (this.hasNuma) installNuma(this.files);
  }

  /** Memory is given out by its place. */
  get hasNuma(): boolean {
    return this.#o.also?.includes('memory') === true;
  }

  /** A pod whose containers run listens on all ports. */
  #answers(host: string): boolean {
    const { containers } = this.runtime.state;
    const listens = ({ state, sandbox }: FakeContainer): boolean =>
      sandbox.ip === host && sandbox.ready && state === ContainerState.CONTAINER_RUNNING;
    // Mostly the one that answered the last time.
    const last = this.#answered.get(host);
    if (last !== undefined && listens(last) && containers.get(last.id) === last) return true;
    for (const container of containers.values())
      if (listens(container)) {
        this.#answered.set(host, container);
        return true;
      }
    return false;
  }

  /** Something happened that everybody who runs this seed must see at this very moment. */
  trace(text: string): void {
    const line = `${this.scheduler.monotonic().toFixed(3)} ${text}`;
    if (this.#lines.push(line) === LINES_AT_ONCE) this.#hashLines();
    this.#o.onTrace?.(line);
  }

  /** Of everything traced so far. */
  digest(): string {
    this.#hashLines();
    return this.#hash.copy().digest('hex').slice(0, 16);
  }

  #hashLines(): void {
    for (const line of this.#lines) this.#hash.update(`${line}\n`);
    this.#lines = [];
  }

  get drivers(): readonly CsiDriver[] {
    return [this.csi, this.block].filter((driver) => driver !== undefined);
  }

  /** Containers that run. */
  running(): readonly FakeContainer[] {
    return [...this.runtime.state.containers.values()].filter((c) => c.state === ContainerState.CONTAINER_RUNNING);
  }

  #killAgent(): void {
    this.agent.kill();
    this.api.broken.removeAllListeners();
    this.api.closeWatches();
  }

  async cordon(isWanted: boolean): Promise<void> {
    const { status } = await this.api.admin('PATCH', '/api/v1/nodes/n1', { spec: { unschedulable: isWanted } });
    if (status === 200) this.isCordoned = isWanted;
  }

  /** Ends the agent, by the sword or by asking, and starts it again some time later. `meanwhile`: just before that. */
  restartAgent(how: 'kill' | 'stop', forMs: number, meanwhile: () => void = () => undefined): void {
    this.faults.disturb();
    if (how === 'kill') this.#killAgent();
    else this.agent.stop();
    this.#later(forMs, () => {
      if (!this.hasPower) return;
      // A stop that takes longer than systemd waits ends with SIGKILL.
      if (this.agent.isRunning) this.#killAgent();
      meanwhile();
      this.agent.start();
    });
  }

  restartRuntime(forMs: number): void {
    if (!this.isUp) return;
    this.isUp = false;
    this.runtimeFaults.generation++;
    this.faults.disturb();
    void this.runtime.restart(Math.min(forMs, 60_000)).then(() => {
      this.isUp = true;
      this.faults.disturb();
    });
  }

  /** What was written is on disk, and then there is no power any more; a runtime that is being started comes up before. */
  goDown(forMs: number): void {
    if (!this.hasPower) return;
    if (!this.isUp) return this.#later(RUNTIME_LOOK_MS, () => this.goDown(forMs));
    this.files.syncAll();
    this.powerCut(forMs);
  }

  powerCut(forMs: number): void {
    if (!this.isUp) return;
    this.isUp = false;
    this.hasPower = false;
    this.runtimeFaults.generation++;
    this.faults.disturb();
    this.#killAgent();
    this.machine.sockets.clear();
    for (const driver of this.drivers) driver.forget();
    this.devices?.stop();
    this.claims?.forget();
    this.logind?.forget();
    for (const c of this.running()) this.runtime.state.exit(c.id, 255, 'Unknown');
    for (const sandbox of this.runtime.state.sandboxes.values()) sandbox.ready = false;
    this.files.powerCut();
    this.trace('power cut');
    this.#later(Math.max(forMs, 5000), () => {
      this.#bootHost();
      makeDirs(this.files, this.runtime.root);
      void this.runtime.start().then(() => {
        this.isUp = true;
        this.hasPower = true;
        this.faults.disturb();
        if (!this.faults.active.includes('csi-restart')) void this.csi?.processes.start();
        if (!this.faults.active.includes('dra-restart')) this.claims?.start();
        if (!this.faults.active.includes('block-restart')) void this.block?.processes.start();
        this.agent.start();
      });
    });
  }

  #later(ms: number, fn: () => void): void {
    this.scheduler.after(ms, fn, this.scheduler.world);
  }
}
