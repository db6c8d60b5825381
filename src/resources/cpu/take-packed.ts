// Chooses CPUs as close together as possible: whole NUMA nodes and sockets, whole uncore caches where asked for, whole
// cores, single threads. Pure.
import type { CpuSet } from '../../core/cpuset.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { CpuTopology, CpuUnit } from './cpu-topology.ts';
import { ascending, FreeCpus, type CpuOrder } from './free-cpus.ts';

export type TakeOptions = {
  readonly order: CpuOrder;
  /** Prefer CPUs that share a last-level cache (`prefer-align-cpus-by-uncorecache`). */
  readonly uncore: boolean;
};

export function takePacked(topology: CpuTopology, available: CpuSet, count: number, options: TakeOptions): CpuSet {
  const free = new FreeCpus(topology, available, count);
  checkEnough(free);
  const { counts } = topology;
  const wholeUnits: readonly CpuUnit[] = counts.socket >= counts.numa ? ['numa', 'socket'] : ['socket', 'numa'];
  const steps: readonly (() => void)[] = [
    ...wholeUnits.map((unit) => () => takeWhole(free, unit)),
    () => options.uncore && takeByUncore(free),
    () => options.order === 'packed' && takeWhole(free, 'core'),
    () => takeSingles(free, options.order),
  ];
  for (const step of steps) {
    if (free.need < 1) break;
    step();
  }
  return free.taken;
}

export function checkEnough(free: FreeCpus): void {
  if (free.need > free.size)
    throw new KubeletError(
      'exhausted',
      `not enough cpus available to satisfy request: requested=${free.need}, available=${free.size}`,
    );
}

const LISTS = {
  numa: (free: FreeCpus) => free.numas(),
  socket: (free: FreeCpus) => free.sockets(),
  uncore: (free: FreeCpus) => free.uncores(),
  core: (free: FreeCpus) => free.cores(),
} satisfies Record<CpuUnit, unknown>;

/** Takes every whole free unit that is not too large. */
function takeWhole(free: FreeCpus, unit: CpuUnit): void {
  for (const id of LISTS[unit](free).filter((each) => free.isWhole(unit, each))) {
    const cpus = free.topology.units[unit].get(id);
    if (cpus !== undefined && free.need >= cpus.size) free.take(cpus);
  }
}

function takeByUncore(free: FreeCpus): void {
  for (const uncore of free.uncores()) {
    if (free.need >= free.topology.per.uncore) takeWhole(free, 'uncore');
    if (free.need < 1) return;
    takePartOfUncore(free, uncore);
    if (free.need < 1) return;
  }
}

/** All that is still needed from the free cores of one cache, or nothing. */
function takePartOfUncore(free: FreeCpus, uncore: number): void {
  const perCore = free.topology.per.core;
  const cores = ascending(free.within('core', 'uncore', uncore)).slice(0, Math.ceil(free.need / perCore));
  const cpus = ascending(cores.flatMap((core) => [...free.in('core', core)]));
  // An odd count needs one thread only of the last core.
  const spare = free.need % 2 !== 0 && perCore > 1 && cpus.length > free.need ? 1 : 0;
  const chosen = cpus.slice(0, cpus.length - spare);
  if (chosen.length === free.need) free.take(new Set(chosen));
}

function takeSingles(free: FreeCpus, order: CpuOrder): void {
  free.take(new Set(free.cpus(order).slice(0, free.need)));
}
