// Pods and their containers: which ones are shown, and their figures from cgroups, runtime and disk.
import { join } from 'node:path';
import type { ContainerStats } from '../cri/gen/cri.ts';
import type { PodUid } from '../core/ids.ts';
import type { ObservedContainer, ObservedSandbox, PodSnapshot } from '../core/snapshot.ts';
import type { Detail } from '../host/cgroups/statistics.ts';
import type { InterfaceCounters } from '../host/proc.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf } from '../lib/errors.ts';
import type { Census, PodCgroup } from './census.ts';
import {
  containerFigures,
  cpuFigures,
  cpuSum,
  ephemeralStorage,
  ioFigures,
  memoryFigures,
  memorySum,
  networkFigures,
  runtimeFs,
  swapFigures,
  usedOf,
  type FsCapacity,
  type Reading,
  type Usage,
} from './summary.ts';
import { Moment, type ContainerFigures, type FsFigures, type PodFigures } from './summary-types.ts';
import type { PodVolumeFigures } from './volume-figures.ts';

interface Cgroups {
  read(path: string, detail: Detail, signal: AbortSignal): Promise<Reading | undefined>;
}
interface Processes {
  procsOfContainer(path: string, signal: AbortSignal): Promise<readonly number[]>;
}
interface Disk {
  filesystem(path: string): Promise<FsCapacity>;
  filesIn(dir: string): Promise<Usage | undefined>;
  file(path: string): Promise<Usage | undefined>;
  interfaces(pid: number): Promise<readonly InterfaceCounters[] | undefined>;
}

export type PodReadingsDeps = {
  readonly cgroups: Cgroups;
  readonly processes: Processes;
  readonly disk: Disk;
  readonly volumesOf: (uid: PodUid) => PodVolumeFigures | undefined;
  readonly clock: Clock;
};

export type PodReadingsOptions = {
  readonly rootDir: string;
  readonly podLogsDir: string;
  /** Whether pressure is shown at all. */
  readonly psi: boolean;
};

/** What all pods of one answer share. */
export type PodsContext = {
  readonly census: Census;
  /** By container id. */
  readonly reported: ReadonlyMap<string, ContainerStats>;
  readonly rootFs: FsCapacity;
};

/** A pod that is shown: its newest ready sandbox and what runs in it. */
export type ShownPod = {
  readonly snapshot: PodSnapshot;
  readonly sandbox: ObservedSandbox;
  readonly containers: readonly ObservedContainer[];
};

/** Only running containers count, and only pods that have one. In order of creation. */
export function shownPods(snapshots: readonly PodSnapshot[]): readonly ShownPod[] {
  const shown: ShownPod[] = [];
  for (const snapshot of snapshots) {
    const sandbox = snapshot.sandboxes.find((s) => s.ready);
    if (sandbox === undefined) continue;
    const containers = snapshot.containers
      .filter((c) => c.state === 'running' && c.sandboxId === sandbox.id)
      .sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
    if (containers.length > 0) shown.push({ snapshot, sandbox, containers });
  }
  return shown;
}

export class PodReadings {
  readonly #deps: PodReadingsDeps;
  readonly #o: PodReadingsOptions;

  constructor(deps: PodReadingsDeps, options: PodReadingsOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  /** Everything about one pod. */
  async full(pod: ShownPod, context: PodsContext, signal: AbortSignal): Promise<PodFigures> {
    const { snapshot, sandbox } = pod;
    const filesystems = new Map<string, Promise<FsCapacity | undefined>>();
    const cgroup = context.census.get(snapshot.uid);
    const [base, network, processes, containers, podLogs, etcHosts, terminationLogs] = await Promise.all([
      this.#base(pod, cgroup, context.reported, signal),
      this.#network([sandbox.id, ...pod.containers.map((c) => c.id)], cgroup, signal),
      this.#processCount(pod, cgroup, signal),
      Promise.all(pod.containers.map((c) => this.#disk(pod, c, context, filesystems))),
      this.#used(context.rootFs, () => this.#deps.disk.filesIn(this.#logDir(snapshot))),
      this.#used(context.rootFs, () => this.#deps.disk.file(join(this.#podDir(snapshot.uid), 'etc-hosts'))),
      this.#used(context.rootFs, () => this.#terminationLogs(snapshot)),
    ]);
    const volumes = this.#deps.volumesOf(snapshot.uid);
    const { swap, ...rest } = base;
    return {
      ...rest,
      containers: base.containers.map(({ swap: own, ...figures }, i) => ({ ...figures, ...containers[i], swap: own })),
      network,
      volume: volumes === undefined ? undefined : notEmpty([...volumes.ephemeral, ...volumes.others]),
      'ephemeral-storage': ephemeralStorage({
        rootFs: context.rootFs,
        containers,
        volumes: volumes?.ephemeral ?? [],
        podLogs,
        etcHosts,
        terminationLogs,
      }),
      process_stats: processes === undefined ? undefined : { process_count: processes },
      swap,
    };
  }

  /** The files are made by the kubelet, one for each start; what is in them is the pod's. */
  async #terminationLogs({ uid, containers }: PodSnapshot): Promise<Usage | undefined> {
    const dir = join(this.#podDir(uid), 'containers');
    const names = [...new Set(containers.map((c) => c.name))];
    const parts = await Promise.all(names.map((name) => this.#deps.disk.filesIn(join(dir, name))));
    const bytes = parts.reduce((sum, part) => sum + (part?.bytes ?? 0), 0);
    return bytes === 0 ? undefined : { bytes, inodes: 0 };
  }

  /** Processor and memory of one pod. */
  async reduced(pod: ShownPod, context: Omit<PodsContext, 'rootFs'>, signal: AbortSignal): Promise<PodFigures> {
    const base = await this.#base(pod, context.census.get(pod.snapshot.uid), context.reported, signal);
    return { ...base, io: undefined, containers: base.containers.map((c) => ({ ...c, io: undefined })) };
  }

  async #base(
    { snapshot, sandbox, containers }: ShownPod,
    cgroup: PodCgroup | undefined,
    reported: ReadonlyMap<string, ContainerStats>,
    signal: AbortSignal,
  ): Promise<PodFigures> {
    const { cgroups, clock } = this.#deps;
    const { psi } = this.#o;
    const [own, ...parts] = await Promise.all([
      cgroup === undefined ? undefined : cgroups.read(cgroup.path, 'usage', signal),
      ...containers.map(async (container): Promise<ContainerFigures> => {
        const path = cgroup?.members.get(container.id);
        const reading = path === undefined ? undefined : await cgroups.read(path, 'usage', signal);
        const { cpu, memory, io, swap } = containerFigures(reported.get(container.id), reading, clock.now(), psi);
        return { name: container.name, startTime: moment(container.createdAt), cpu, memory, io, swap };
      }),
    ]);
    const now = clock.now();
    return {
      podRef: { name: snapshot.name, namespace: snapshot.namespace, uid: snapshot.uid },
      startTime: moment(sandbox.createdAt),
      containers: parts,
      cpu: own === undefined ? cpuSum(known(parts.map((p) => p.cpu)), now) : cpuFigures(own, psi),
      memory: own === undefined ? memorySum(known(parts.map((p) => p.memory)), now) : memoryFigures(own, psi),
      io: own === undefined ? undefined : ioFigures(own, psi),
      swap: own === undefined ? undefined : swapFigures(own),
    };
  }

  /** By any process of the pod: a sandbox need not have one (CRI-O's has none unless processes are shared). */
  async #network(
    members: readonly string[],
    cgroup: PodCgroup | undefined,
    signal: AbortSignal,
  ): Promise<PodFigures['network']> {
    for (const path of known(members.map((id) => cgroup?.members.get(id)))) {
      const [pid] = await this.#deps.processes.procsOfContainer(path, signal);
      const counters = pid === undefined ? undefined : await this.#deps.disk.interfaces(pid);
      if (counters !== undefined) return networkFigures(this.#deps.clock.now(), counters);
    }
    return undefined;
  }

  async #processCount(
    { containers }: ShownPod,
    cgroup: PodCgroup | undefined,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const paths = known(containers.map((c) => cgroup?.members.get(c.id)));
    if (paths.length === 0) return undefined;
    const lists = await Promise.all(paths.map((p) => this.#deps.processes.procsOfContainer(p, signal)));
    return lists.flat().length;
  }

  async #disk(
    { snapshot }: ShownPod,
    container: ObservedContainer,
    { reported, rootFs }: PodsContext,
    filesystems: Map<string, Promise<FsCapacity | undefined>>,
  ): Promise<{ rootfs: FsFigures | undefined; logs: FsFigures | undefined }> {
    const layer = reported.get(container.id)?.writableLayer;
    const [fs, logs] = await Promise.all([
      layer?.fsId === undefined ? undefined : this.#filesystem(layer.fsId.mountpoint, filesystems),
      this.#used(rootFs, () => this.#deps.disk.filesIn(join(this.#logDir(snapshot), container.name))),
    ]);
    return { rootfs: layer === undefined ? undefined : runtimeFs(layer, fs), logs };
  }

  /** A filesystem the runtime names and we cannot see is left out, not an error. */
  #filesystem(
    mountpoint: string,
    known: Map<string, Promise<FsCapacity | undefined>>,
  ): Promise<FsCapacity | undefined> {
    let found = known.get(mountpoint);
    if (found === undefined) {
      found = this.#deps.disk.filesystem(mountpoint).catch((err: unknown) => {
        if (errnoOf(err) === 'ENOENT') return undefined;
        throw err;
      });
      known.set(mountpoint, found);
    }
    return found;
  }

  async #used(rootFs: FsCapacity, measure: () => Promise<Usage | undefined>): Promise<FsFigures | undefined> {
    const used = await measure();
    return used === undefined ? undefined : usedOf(this.#deps.clock.now(), used, rootFs);
  }

  #logDir({ namespace, name, uid }: PodSnapshot): string {
    return join(this.#o.podLogsDir, `${namespace}_${name}_${uid}`);
  }

  #podDir(uid: PodUid): string {
    return join(this.#o.rootDir, 'pods', uid);
  }
}

const moment = (nanos: bigint): Moment => new Moment(Number(nanos) / 1e6);
const known = <T>(values: readonly (T | undefined)[]): T[] => values.filter((v) => v !== undefined);
const notEmpty = <T>(values: readonly T[]): readonly T[] | undefined => (values.length === 0 ? undefined : values);
