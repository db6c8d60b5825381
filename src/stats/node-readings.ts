// The node itself: the root cgroup, the cgroups of its own services, filesystems, process ids.
import type { FilesystemUsage, ImageFsInfoResponse } from '../cri/gen/cri.ts';
import type { Detail } from '../host/cgroups/statistics.ts';
import type { MachineFacts } from '../host/machine.ts';
import type { InterfaceCounters } from '../host/proc.ts';
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { CgroupPlaces } from './census.ts';
import {
  cpuFigures,
  ioFigures,
  memoryFigures,
  networkFigures,
  runtimeFs,
  swapFigures,
  wholeFs,
  type FsCapacity,
  type Reading,
} from './summary.ts';
import { Moment, type ContainerFigures, type FsFigures, type NodeFigures } from './summary-types.ts';

interface Cgroups {
  read(path: string, detail: Detail, signal: AbortSignal): Promise<Reading | undefined>;
  readRoot(
    machine: { memoryBytes: number; swapBytes: number; swapUsedBytes: number },
    detail: Detail,
    signal: AbortSignal,
  ): Promise<Reading | undefined>;
}
interface Births {
  createdMs(path: string): Promise<number>;
}
interface Host {
  filesystem(path: string): Promise<FsCapacity>;
  interfaces(pid: number): Promise<readonly InterfaceCounters[] | undefined>;
  machine(): Promise<MachineFacts>;
  bootMs(): Promise<number>;
  swapUsed(): Promise<number>;
  tasks(): Promise<number>;
}

export type NodeReadingsDeps = {
  readonly cgroups: Cgroups;
  readonly births: Births;
  readonly host: Host;
  readonly imageFs: (signal: AbortSignal) => Promise<ImageFsInfoResponse>;
  readonly clock: Clock;
};

export type NodeReadingsOptions = {
  readonly nodeName: string;
  readonly rootDir: string;
  readonly places: CgroupPlaces;
  readonly psi: boolean;
  /** When this process began, for the row of the kubelet's own cgroup. */
  readonly startedMs: number;
};

/** The process whose network is the machine's. */
const INIT = 1;
/** How long those who can do without the runtime's filesystems wait for them. */
const RUNTIME_PATIENCE_MS = 5000;

export class NodeReadings {
  readonly #deps: NodeReadingsDeps;
  readonly #o: NodeReadingsOptions;

  constructor(deps: NodeReadingsDeps, options: NodeReadingsOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  /** The root cgroup with the machine as its limit. */
  async root(detail: Detail, signal: AbortSignal, machine = this.#deps.host.machine()): Promise<Reading> {
    const { host, cgroups } = this.#deps;
    const [{ memoryBytes, swapBytes }, swapUsedBytes] = await Promise.all([machine, host.swapUsed()]);
    const reading = await cgroups.readRoot({ memoryBytes, swapBytes, swapUsedBytes }, detail, signal);
    if (reading === undefined) throw new KubeletError('unavailable', 'failed to get root cgroup stats: no statistics');
    return reading;
  }

  rootFs(): Promise<FsCapacity> {
    return this.#deps.host.filesystem(this.#o.rootDir);
  }

  /**
   * With `onRuntimeFailure` the runtime's filesystems are left out when it does not tell in time; without, that is an
   * error.
   */
  async full(
    rootFs: FsCapacity | undefined,
    signal: AbortSignal,
    onRuntimeFailure?: (err: unknown) => void,
  ): Promise<NodeFigures> {
    const { host, clock } = this.#deps;
    const facts = host.machine();
    const [base, network, runtime, machine, tasks] = await Promise.all([
      this.#base(true, signal, facts),
      host.interfaces(INIT),
      onRuntimeFailure === undefined
        ? this.#runtimeFilesystems(signal)
        : withDeadline(clock, signal, RUNTIME_PATIENCE_MS, (own) =>
            abortable(own, this.#runtimeFilesystems(own)),
          ).catch((err: unknown) => {
            signal.throwIfAborted();
            onRuntimeFailure(err);
            return undefined;
          }),
      facts,
      host.tasks(),
    ]);
    const { figures, root } = base;
    const { swap, ...rest } = figures;
    return {
      ...rest,
      io: ioFigures(root, this.#o.psi),
      network: network === undefined ? undefined : networkFigures(root.atMs, network),
      fs: rootFs === undefined ? undefined : wholeFs(rootFs),
      runtime,
      rlimit: { time: new Moment(clock.now()), maxpid: machine.maxPids, curproc: tasks },
      swap,
    };
  }

  async reduced(signal: AbortSignal): Promise<NodeFigures> {
    return (await this.#base(false, signal)).figures;
  }

  async #base(
    io: boolean,
    signal: AbortSignal,
    machine?: Promise<MachineFacts>,
  ): Promise<{ figures: NodeFigures; root: Reading }> {
    const { psi, nodeName } = this.#o;
    const [root, systemContainers, bootMs] = await Promise.all([
      this.root('usage', signal, machine),
      this.#systemContainers(io, signal),
      this.#deps.host.bootMs(),
    ]);
    return {
      root,
      figures: {
        nodeName,
        systemContainers,
        startTime: new Moment(bootMs),
        cpu: cpuFigures(root, psi),
        memory: memoryFigures(root, psi),
        swap: swapFigures(root),
      },
    };
  }

  /** A cgroup that was named and is not there has no row. */
  async #systemContainers(io: boolean, signal: AbortSignal): Promise<readonly ContainerFigures[]> {
    const { places, psi, startedMs } = this.#o;
    const rows = await Promise.all(
      [...places.system, { name: 'pods', path: places.pods }].map(async ({ name, path }) => {
        const [reading, bornMs] = await Promise.all([
          this.#deps.cgroups.read(path, 'usage', signal),
          this.#deps.births.createdMs(path),
        ]);
        if (reading === undefined) return undefined;
        return {
          name,
          startTime: new Moment(name === 'kubelet' ? startedMs : bornMs),
          cpu: cpuFigures(reading, psi),
          memory: memoryFigures(reading, psi),
          io: io ? ioFigures(reading, psi) : undefined,
          swap: swapFigures(reading),
        };
      }),
    );
    return rows.filter((row) => row !== undefined);
  }

  /** Without a container filesystem of its own the runtime keeps containers where it keeps images. */
  async #runtimeFilesystems(signal: AbortSignal): Promise<NodeFigures['runtime']> {
    const { imageFilesystems, containerFilesystems } = await this.#deps.imageFs(signal).catch((err: unknown) => {
      throw new KubeletError('unavailable', `failed to get imageFs stats: ${messageOf(err)}`, { cause: err });
    });
    const [image] = imageFilesystems;
    if (image === undefined)
      throw new KubeletError('unavailable', 'failed to get imageFs stats: the runtime names no image filesystem');
    const imageFs = await this.#runtimeFs(image);
    const [container] = containerFilesystems;
    return { imageFs, containerFs: container === undefined ? imageFs : await this.#runtimeFs(container) };
  }

  async #runtimeFs(usage: FilesystemUsage): Promise<FsFigures> {
    return runtimeFs(
      usage,
      usage.fsId === undefined ? undefined : await this.#deps.host.filesystem(usage.fsId.mountpoint),
    );
  }
}
