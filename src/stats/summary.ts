// Turns readings into the summary's figures. Pure: readings and moments in, figures out.
import type { ContainerStats, CpuUsage, FilesystemUsage, PsiStats, UInt64Value } from '../cri/gen/cri.ts';
import { NO_PRESSURE, type Pressure, type PressureLine } from '../host/cgroups/kernel-formats.ts';
import type { CgroupStatistics } from '../host/cgroups/statistics.ts';
import type { InterfaceCounters } from '../host/proc.ts';
import {
  Moment,
  type CpuFigures,
  type FsFigures,
  type InterfaceFigures,
  type IoFigures,
  type MemoryFigures,
  type NetworkFigures,
  type Psi,
  type PsiLine,
  type SwapFigures,
} from './summary-types.ts';

/** One reading of a cgroup and when it was made. */
export type Reading = {
  readonly atMs: number;
  readonly stats: CgroupStatistics;
  /** Between the last two samples; 0 before there are two. */
  readonly nanoCores: number;
};

export type FsCapacity = {
  readonly atMs: number;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly freeBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
};

export type Usage = { readonly bytes: number; readonly inodes: number };

/** The interface whose figures stand for the whole. */
const DEFAULT_INTERFACE = 'eth0';

const psiLine = ({ totalUs, avg10, avg60, avg300 }: PressureLine): PsiLine => ({
  total: totalUs,
  avg10,
  avg60,
  avg300,
});
const psiOf = ({ full, some }: Pressure): Psi => ({ full: psiLine(full), some: psiLine(some) });

/** Rows made from cgroups always show pressure, zeros where the kernel keeps none. */
const cgroupPsi = (pressure: Pressure | undefined, shown: boolean): Psi | undefined =>
  shown ? psiOf(pressure ?? NO_PRESSURE) : undefined;

export function cpuFigures({ atMs, stats, nanoCores }: Reading, psi: boolean): CpuFigures {
  return {
    time: new Moment(atMs),
    usageNanoCores: stats.cpu === undefined ? 0 : nanoCores,
    usageCoreNanoSeconds: stats.cpu?.usageNs ?? 0,
    psi: cgroupPsi(stats.pressure?.cpu, psi),
  };
}

export function memoryFigures({ atMs, stats }: Reading, psi: boolean): MemoryFigures {
  const { memory } = stats;
  return {
    time: new Moment(atMs),
    availableBytes:
      memory?.limitBytes === undefined ? undefined : Math.max(0, memory.limitBytes - memory.workingSetBytes),
    usageBytes: memory?.usageBytes,
    workingSetBytes: memory?.workingSetBytes ?? 0,
    rssBytes: memory?.rssBytes,
    pageFaults: memory?.ownPageFaults,
    majorPageFaults: memory?.ownMajorPageFaults,
    psi: memory === undefined ? undefined : cgroupPsi(stats.pressure?.memory, psi),
  };
}

export function ioFigures({ atMs, stats }: Reading, psi: boolean): IoFigures | undefined {
  return psi ? { time: new Moment(atMs), psi: cgroupPsi(stats.pressure?.io, true) } : undefined;
}

export function swapFigures({ atMs, stats }: Reading): SwapFigures | undefined {
  const { memory } = stats;
  if (memory === undefined) return undefined;
  return {
    time: new Moment(atMs),
    swapAvailableBytes:
      memory.swapLimitBytes === undefined ? undefined : Math.max(0, memory.swapLimitBytes - memory.swapBytes),
    swapUsageBytes: memory.swapBytes,
  };
}

export function networkFigures(atMs: number, counters: readonly InterfaceCounters[]): NetworkFigures {
  const interfaces = counters.map(({ name, rxBytes, rxErrors, txBytes, txErrors }): InterfaceFigures => ({
    name,
    rxBytes,
    rxErrors,
    txBytes,
    txErrors,
  }));
  const main = interfaces.find(({ name }) => name === DEFAULT_INTERFACE) ?? { name: '' };
  return { time: new Moment(atMs), ...main, interfaces };
}

/** A filesystem as a whole. */
export const wholeFs = (fs: FsCapacity): FsFigures => ({
  time: new Moment(fs.atMs),
  availableBytes: fs.availableBytes,
  capacityBytes: fs.capacityBytes,
  usedBytes: fs.capacityBytes - fs.freeBytes,
  inodesFree: fs.inodesFree,
  inodes: fs.inodes,
  inodesUsed: fs.inodes - fs.inodesFree,
});

/** What something uses of the filesystem it is on. */
export const usedOf = (atMs: number, used: Usage | undefined, fs: FsCapacity | undefined): FsFigures => ({
  time: new Moment(atMs),
  availableBytes: fs?.availableBytes,
  capacityBytes: fs?.capacityBytes,
  usedBytes: used?.bytes,
  inodesFree: fs?.inodesFree,
  inodes: fs?.inodes,
  inodesUsed: used?.inodes,
});

/** What the runtime says it uses of a filesystem. */
export const runtimeFs = (usage: FilesystemUsage, fs: FsCapacity | undefined): FsFigures => ({
  ...usedOf(momentOf(usage.timestamp), undefined, fs),
  usedBytes: usage.usedBytes?.value,
  inodesUsed: usage.inodesUsed?.value,
});

// ---- a container's own figures: from its cgroup, else as the runtime reports them ----

export type ContainerUsage = {
  readonly cpu: CpuFigures;
  readonly memory: MemoryFigures;
  readonly io: IoFigures | undefined;
  readonly swap: SwapFigures;
};

const momentOf = (nanos: bigint): number => Number(nanos) / 1e6;
const valueOf = (value: UInt64Value | undefined): number | undefined => value?.value;

/** Where the runtime tells no pressure, the container's cgroup may. */
function criPsi(reported: PsiStats | undefined, measured: Pressure | undefined): Psi | undefined {
  if (reported === undefined) return measured === undefined ? undefined : psiOf(measured);
  const line = (of: PsiStats['Full']): PsiLine => ({
    total: of?.Total ?? 0,
    avg10: of?.Avg10 ?? 0,
    avg60: of?.Avg60 ?? 0,
    avg300: of?.Avg300 ?? 0,
  });
  return { full: line(reported.Full), some: line(reported.Some) };
}

/**
 * The kernel's figures win wherever they can be read: what runtimes report differs (CRI-O has no memory limit as 9.2e18 bytes,
 * memory and swap together as swap, and no pressure).
 */
export function containerFigures(
  reported: ContainerStats | undefined,
  own: Reading | undefined,
  nowMs: number,
  psi: boolean,
): ContainerUsage {
  const runtime = runtimeFigures(reported, own, nowMs, psi);
  if (own?.stats.memory === undefined) return runtime;
  const { cpu } = runtime;
  return {
    cpu:
      own.stats.cpu === undefined
        ? cpu
        : { ...cpuFigures(own, psi), usageNanoCores: own.nanoCores || cpu.usageNanoCores },
    memory: memoryFigures(own, psi),
    io: ioFigures(own, psi),
    swap: {
      ...runtime.swap,
      swapUsageBytes: own.stats.memory.swapBytes,
      swapAvailableBytes: bounded(swapFigures(own)?.swapAvailableBytes ?? runtime.swap.swapAvailableBytes),
    },
  };
}

/** Runtimes tell "no limit" as the largest number there is, or a little less. */
const NO_LIMIT_BYTES = 2 ** 60;
const bounded = (bytes: number | undefined): number | undefined =>
  bytes === undefined || bytes >= NO_LIMIT_BYTES ? undefined : bytes;

function runtimeFigures(
  reported: ContainerStats | undefined,
  own: Reading | undefined,
  nowMs: number,
  psi: boolean,
): ContainerUsage {
  const pressure = psi ? own?.stats.pressure : undefined;
  const { memory, swap, io } = reported ?? {};
  return {
    cpu: containerCpu(reported?.cpu, own, nowMs, psi),
    memory:
      memory === undefined
        ? { ...EMPTY_MEMORY, time: new Moment(nowMs) }
        : {
            time: new Moment(momentOf(memory.timestamp)),
            availableBytes: bounded(valueOf(memory.availableBytes)),
            usageBytes: valueOf(memory.usageBytes),
            workingSetBytes: valueOf(memory.workingSetBytes),
            rssBytes: valueOf(memory.rssBytes),
            pageFaults: valueOf(memory.pageFaults),
            majorPageFaults: valueOf(memory.majorPageFaults),
            psi: psi ? criPsi(memory.psi, pressure?.memory) : undefined,
          },
    io: psi
      ? {
          time: new Moment(io === undefined ? nowMs : momentOf(io.timestamp)),
          psi: criPsi(io?.psi, pressure?.io),
        }
      : undefined,
    swap:
      swap === undefined
        ? { time: new Moment(nowMs), swapAvailableBytes: 0, swapUsageBytes: 0 }
        : {
            time: new Moment(momentOf(swap.timestamp)),
            swapAvailableBytes: valueOf(swap.swapAvailableBytes),
            swapUsageBytes: valueOf(swap.swapUsageBytes),
          },
  };
}

const EMPTY_MEMORY: Omit<MemoryFigures, 'time'> = {
  availableBytes: undefined,
  usageBytes: 0,
  workingSetBytes: 0,
  rssBytes: 0,
  pageFaults: undefined,
  majorPageFaults: undefined,
  psi: undefined,
};

/** The runtime's rate is 0 until it was asked twice; then ours, which is sampled anyway, is the better one. */
function containerCpu(
  reported: CpuUsage | undefined,
  own: Reading | undefined,
  nowMs: number,
  psi: boolean,
): CpuFigures {
  if (reported === undefined)
    return { time: new Moment(nowMs), usageNanoCores: 0, usageCoreNanoSeconds: 0, psi: undefined };
  const rate = valueOf(reported.usageNanoCores);
  return {
    time: new Moment(momentOf(reported.timestamp)),
    usageNanoCores: rate === undefined || rate === 0 ? (own?.nanoCores ?? rate) : rate,
    usageCoreNanoSeconds: valueOf(reported.usageCoreNanoSeconds),
    psi: psi ? criPsi(reported.psi, own?.stats.pressure?.cpu) : undefined,
  };
}

// ---- a pod from its parts ----

const sum = (values: readonly (number | undefined)[]): number | undefined => {
  const known = values.filter((v) => v !== undefined);
  return known.length === 0 ? undefined : known.reduce((a, b) => a + b, 0);
};

const latest = (times: readonly Moment[], fallbackMs: number): Moment =>
  new Moment(times.reduce((ms, t) => Math.max(ms, t.ms), fallbackMs));

/** Of a pod whose cgroup cannot be read: the sum of its containers. */
export function cpuSum(parts: readonly CpuFigures[], nowMs: number): CpuFigures {
  return {
    time: latest(
      parts.map((p) => p.time),
      parts.length === 0 ? nowMs : 0,
    ),
    usageNanoCores: sum(parts.map((p) => p.usageNanoCores)),
    usageCoreNanoSeconds: sum(parts.map((p) => p.usageCoreNanoSeconds)),
    psi: undefined,
  };
}

export function memorySum(parts: readonly MemoryFigures[], nowMs: number): MemoryFigures {
  const total = (pick: (part: MemoryFigures) => number | undefined): number | undefined => sum(parts.map(pick));
  return {
    time: latest(
      parts.map((p) => p.time),
      parts.length === 0 ? nowMs : 0,
    ),
    availableBytes: total((p) => p.availableBytes),
    usageBytes: total((p) => p.usageBytes),
    workingSetBytes: total((p) => p.workingSetBytes),
    rssBytes: total((p) => p.rssBytes),
    pageFaults: total((p) => p.pageFaults),
    majorPageFaults: total((p) => p.majorPageFaults),
    psi: undefined,
  };
}

export type EphemeralParts = {
  readonly rootFs: FsCapacity;
  readonly containers: readonly { readonly rootfs: FsFigures | undefined; readonly logs: FsFigures | undefined }[];
  /** Those on the node's disk that live and die with the pod. */
  readonly volumes: readonly FsFigures[];
  readonly podLogs: FsFigures | undefined;
  readonly etcHosts: FsFigures | undefined;
  /** Of the termination message files, which containers may write to as they like. */
  readonly terminationLogs?: FsFigures | undefined;
};

/** A container's logs count only together with its writable layer. */
export function ephemeralStorage(from: EphemeralParts): FsFigures {
  const { rootFs, containers, volumes, podLogs, etcHosts, terminationLogs } = from;
  const parts = [
    ...containers.flatMap(({ rootfs, logs }) => (rootfs === undefined ? [] : [rootfs, logs])),
    ...volumes,
    podLogs,
    etcHosts,
    terminationLogs,
  ].filter((part) => part !== undefined);
  return {
    ...usedOf(rootFs.atMs, undefined, rootFs),
    time: latest(
      parts.map((p) => p.time),
      rootFs.atMs,
    ),
    usedBytes: sum(parts.map((p) => p.usedBytes)),
    inodesUsed: sum(parts.map((p) => p.inodesUsed)),
  };
}
