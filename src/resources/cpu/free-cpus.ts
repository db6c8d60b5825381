// Free CPUs while some of them are being chosen, and the orders in which units and CPUs are offered: whatever is nearly
// used up comes first, so that large free units stay whole. Holds no state of the node; lives for one choice.
import type { CpuSet } from '../../core/cpuset.ts';
import { groupCpus, type CpuTopology, type CpuUnit } from './cpu-topology.ts';

/** Packed fills one core after the other; spread takes the CPUs of a socket by number, which scatters threads. */
export type CpuOrder = 'packed' | 'spread';

export class FreeCpus {
  readonly topology: CpuTopology;
  readonly taken = new Set<number>();
  #free: ReadonlySet<number>;
  #need: number;
  #groups = new Map<CpuUnit, ReadonlyMap<number, CpuSet>>();

  constructor(topology: CpuTopology, available: CpuSet, count: number) {
    this.topology = topology;
    this.#free = available.intersection(topology.cpus);
    this.#need = count;
  }

  get need(): number {
    return this.#need;
  }

  get size(): number {
    return this.#free.size;
  }

  take(cpus: CpuSet): void {
    for (const cpu of cpus) this.taken.add(cpu);
    this.#free = this.#free.difference(cpus);
    this.#need -= cpus.size;
    this.#groups = new Map();
  }

  /** The free CPUs of a unit. */
  in(unit: CpuUnit, id: number): CpuSet {
    return this.#by(unit).get(id) ?? new Set();
  }

  /** Whether a unit is free as a whole. Sockets and cores are measured by the machine's average, as upstream does. */
  isWhole(unit: CpuUnit, id: number): boolean {
    const { per, units } = this.topology;
    const size = unit === 'socket' || unit === 'core' ? per[unit] : (units[unit].get(id)?.size ?? 0);
    return this.in(unit, id).size === size;
  }

  numas(): readonly number[] {
    return this.#socketsLead
      ? this.sockets().flatMap((socket) => this.#ranked('numa', 'socket', socket))
      : this.#rank('numa', this.#by('numa').keys());
  }

  sockets(): readonly number[] {
    return this.#socketsLead
      ? this.#rank('socket', this.#by('socket').keys())
      : this.numas().flatMap((numa) => this.#ranked('socket', 'numa', numa));
  }

  cores(): readonly number[] {
    return this.#socketsLead
      ? this.numas().flatMap((numa) => this.#ranked('core', 'numa', numa))
      : this.sockets().flatMap((socket) => this.#ranked('core', 'socket', socket));
  }

  uncores(): readonly number[] {
    return this.numas().flatMap((numa) => this.#ranked('uncore', 'numa', numa));
  }

  cpus(order: CpuOrder): readonly number[] {
    return order === 'packed'
      ? this.cores().flatMap((core) => ascending(this.in('core', core)))
      : this.sockets().flatMap((socket) => ascending(this.in('socket', socket)));
  }

  /** The units with a free CPU in the unit above. */
  within(unit: CpuUnit, above: CpuUnit, id: number): readonly number[] {
    const { places } = this.topology;
    return [...groupCpus(places, this.in(above, id), unit).keys()];
  }

  /** Sockets hold NUMA nodes here, and not the other way round. */
  get #socketsLead(): boolean {
    return this.topology.counts.socket < this.topology.counts.numa;
  }

  #by(unit: CpuUnit): ReadonlyMap<number, CpuSet> {
    let groups = this.#groups.get(unit);
    if (groups === undefined) this.#groups.set(unit, (groups = groupCpus(this.topology.places, this.#free, unit)));
    return groups;
  }

  #ranked(unit: CpuUnit, above: CpuUnit, id: number): readonly number[] {
    return this.#rank(unit, this.within(unit, above, id));
  }

  #rank(unit: CpuUnit, ids: Iterable<number>): readonly number[] {
    const free = this.#by(unit);
    const size = (id: number): number => free.get(id)?.size ?? 0;
    return [...ids].sort((a, b) => size(a) - size(b) || a - b);
  }
}

export const ascending = (cpus: Iterable<number>): readonly number[] => [...cpus].sort((a, b) => a - b);
