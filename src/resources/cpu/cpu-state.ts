// Which CPUs are whose: the content of `cpu_manager_state`. Pure but for the call when something changed.
import type { CpuSet } from '../../core/cpuset.ts';
import { Assignments, type Entries, type Given } from '../assignments.ts';

export type CpuEntries = Entries<CpuSet>;

export type CpuAssignments = Given<CpuSet> & { readonly shared: CpuSet };

const NO_ASSIGNMENTS: CpuAssignments = { shared: new Set(), entries: new Map(), pods: new Map() };

export class CpuState extends Assignments<CpuSet> implements CpuAssignments {
  readonly #onChange: () => void;
  #shared: CpuSet;

  constructor(onChange: () => void, given: CpuAssignments = NO_ASSIGNMENTS) {
    super(onChange, given);
    this.#onChange = onChange;
    this.#shared = given.shared;
  }

  /** The CPUs of all containers that have none of their own: upstream's default set. */
  get shared(): CpuSet {
    return this.#shared;
  }

  setShared(cpus: CpuSet): void {
    this.#shared = cpus;
    this.#onChange();
  }
}
