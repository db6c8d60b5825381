// What the runtime itself says about a pod, in the place of what its cgroups say (gate `PodAndContainerStatsFromCRI`). What
// it does not tell is kept. Pure.
import type {
  ContainerStats,
  CpuUsage,
  MemoryUsage,
  NetworkInterfaceUsage,
  NetworkUsage,
  PodSandboxStats,
  UInt64Value,
} from '../cri/gen/cri.ts';
import {
  Moment,
  type ContainerFigures,
  type CpuFigures,
  type InterfaceFigures,
  type MemoryFigures,
  type NetworkFigures,
  type PodFigures,
} from './summary-types.ts';

/** By pod UID; of several sandboxes the newest counts. */
export function byPod(all: readonly PodSandboxStats[]): ReadonlyMap<string, PodSandboxStats> {
  const newest = new Map<string, PodSandboxStats>();
  const attemptOf = (stats: PodSandboxStats | undefined): number => stats?.attributes?.metadata?.attempt ?? -1;
  for (const stats of all) {
    const uid = stats.attributes?.metadata?.uid;
    if (uid !== undefined && attemptOf(stats) > attemptOf(newest.get(uid))) newest.set(uid, stats);
  }
  return newest;
}

export function withRuntimeFigures(figures: PodFigures, stats: PodSandboxStats | undefined): PodFigures {
  const told = stats?.linux;
  if (told === undefined) return figures;
  const containers = new Map(told.containers.map((c) => [c.attributes?.metadata?.name ?? '', c]));
  const count = told.process?.processCount;
  return {
    ...figures,
    containers: figures.containers.map((c) => containerFrom(c, containers.get(c.name))),
    cpu: cpuFrom(figures.cpu, told.cpu),
    memory: memoryFrom(figures.memory, told.memory),
    ...(figures.network !== undefined && told.network !== undefined && { network: networkFrom(told.network) }),
    ...(figures.process_stats !== undefined &&
      count !== undefined && { process_stats: { process_count: Number(count.value) } }),
  };
}

function containerFrom(figures: ContainerFigures, stats: ContainerStats | undefined): ContainerFigures {
  if (stats === undefined) return figures;
  return { ...figures, cpu: cpuFrom(figures.cpu, stats.cpu), memory: memoryFrom(figures.memory, stats.memory) };
}

function cpuFrom(known: CpuFigures | undefined, told: CpuUsage | undefined): CpuFigures | undefined {
  if (told === undefined) return known;
  return {
    time: momentOf(told.timestamp),
    usageNanoCores: valueOf(told.usageNanoCores) ?? known?.usageNanoCores,
    usageCoreNanoSeconds: valueOf(told.usageCoreNanoSeconds),
    psi: known?.psi,
  };
}

function memoryFrom(known: MemoryFigures | undefined, told: MemoryUsage | undefined): MemoryFigures | undefined {
  if (told === undefined) return known;
  return {
    time: momentOf(told.timestamp),
    availableBytes: valueOf(told.availableBytes),
    usageBytes: valueOf(told.usageBytes),
    workingSetBytes: valueOf(told.workingSetBytes),
    rssBytes: valueOf(told.rssBytes),
    pageFaults: valueOf(told.pageFaults),
    majorPageFaults: valueOf(told.majorPageFaults),
    psi: known?.psi,
  };
}

const networkFrom = ({ timestamp, defaultInterface, interfaces }: NetworkUsage): NetworkFigures => ({
  time: momentOf(timestamp),
  ...interfaceFrom(defaultInterface),
  interfaces: interfaces.map(interfaceFrom),
});

function interfaceFrom(told: NetworkInterfaceUsage | undefined): InterfaceFigures {
  const bytes = (['rxBytes', 'rxErrors', 'txBytes', 'txErrors'] as const).flatMap((name) => {
    const value = valueOf(told?.[name]);
    return value === undefined ? [] : [[name, value] as const];
  });
  return { name: told?.name ?? '', ...Object.fromEntries(bytes) };
}

const momentOf = (nanos: bigint): Moment => new Moment(Number(nanos / 1_000_000n));
const valueOf = (value: UInt64Value | undefined): number | undefined =>
  value === undefined ? undefined : Number(value.value);
