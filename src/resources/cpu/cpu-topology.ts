// The machine's CPUs as the CPU manager sees them. Pure; made once at start.
import type { CpuSet } from '../../core/cpuset.ts';
import type { MachineTopology } from '../../host/topology/machine-topology.ts';
import { KubeletError } from '../../lib/errors.ts';

export type CpuPlace = {
  readonly numa: number;
  readonly socket: number;
  /** The core's lowest thread. */
  readonly core: number;
  readonly uncore: number;
};

/** What CPUs are grouped by. */
export type CpuUnit = keyof CpuPlace;

export type CpuTopology = {
  readonly places: ReadonlyMap<number, CpuPlace>;
  readonly cpus: CpuSet;
  readonly counts: Readonly<Record<CpuUnit, number>>;
  /** Averages over the machine, rounded down. */
  readonly per: Readonly<Record<'core' | 'socket' | 'uncore', number>>;
  /** All CPUs of every unit. */
  readonly units: Readonly<Record<CpuUnit, ReadonlyMap<number, CpuSet>>>;
};

export function cpuTopology({ nodes, sockets }: MachineTopology): CpuTopology {
  const places = new Map<number, CpuPlace>();
  for (const { id: numa, cores } of nodes)
    for (const { socket, threads, uncoreCache } of cores)
      for (const cpu of threads)
        places.set(cpu, { numa, socket, core: threads[0] ?? cpu, uncore: uncoreCache ?? socket });
  if (places.size === 0) throw new KubeletError('invalid', 'could not detect number of cpus');
  const units = {
    numa: groupCpus(places, places.keys(), 'numa'),
    socket: groupCpus(places, places.keys(), 'socket'),
    core: groupCpus(places, places.keys(), 'core'),
    uncore: groupCpus(places, places.keys(), 'uncore'),
  };
  // NUMA nodes without CPUs do not count here; packages count as the kernel names them.
  const counts = { ...countsOf(units), socket: sockets };
  const average = (unit: 'core' | 'socket' | 'uncore'): number =>
    counts[unit] === 0 ? 0 : Math.floor(places.size / counts[unit]);
  return {
    places,
    cpus: new Set([...places.keys()].sort((a, b) => a - b)),
    counts,
    per: { core: average('core'), socket: average('socket'), uncore: average('uncore') },
    units,
  };
}

const countsOf = (units: CpuTopology['units']): Record<CpuUnit, number> => ({
  numa: units.numa.size,
  socket: units.socket.size,
  core: units.core.size,
  uncore: units.uncore.size,
});

/** Some CPUs by the unit they are in. CPUs the machine does not have are left out. */
export function groupCpus(
  places: CpuTopology['places'],
  cpus: Iterable<number>,
  unit: CpuUnit,
): ReadonlyMap<number, ReadonlySet<number>> {
  const groups = new Map<number, Set<number>>();
  for (const cpu of cpus) {
    const place = places.get(cpu);
    if (place === undefined) continue;
    const group = groups.get(place[unit]);
    if (group === undefined) groups.set(place[unit], new Set([cpu]));
    else group.add(cpu);
  }
  return groups;
}

/** Those of `cpus` that are in one of the units. */
export function cpusIn(
  { places }: CpuTopology,
  cpus: Iterable<number>,
  unit: CpuUnit,
  ids: ReadonlySet<number>,
): ReadonlySet<number> {
  const found = new Set<number>();
  for (const cpu of cpus) {
    const place = places.get(cpu);
    if (place !== undefined && ids.has(place[unit])) found.add(cpu);
  }
  return found;
}

/** The units that the CPUs are in. */
export function unitsOf({ places }: CpuTopology, cpus: Iterable<number>, unit: CpuUnit): ReadonlySet<number> {
  const ids = new Set<number>();
  for (const cpu of cpus) {
    const place = places.get(cpu);
    if (place !== undefined) ids.add(place[unit]);
  }
  return ids;
}

/** All threads of the cores that the CPUs touch. */
export const wholeCores = (topology: CpuTopology, cpus: Iterable<number>): ReadonlySet<number> =>
  cpusIn(topology, topology.cpus, 'core', unitsOf(topology, cpus, 'core'));
