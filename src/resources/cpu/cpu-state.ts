// Which CPUs are whose: the content of `cpu_manager_state`. Pure but for the call when something changed.
import type { CpuSet } from '../../core/cpuset.ts';

export type CpuEntries = ReadonlyMap<string, ReadonlyMap<string, CpuSet>>;

/** `pods`: CPUs given to a pod as a whole, from which its containers have theirs. */
export type CpuAssignments = {
  readonly shared: CpuSet;
  readonly entries: CpuEntries;
  readonly pods: ReadonlyMap<string, CpuSet>;
};

const NO_ASSIGNMENTS: CpuAssignments = { shared: new Set(), entries: new Map(), pods: new Map() };

export class CpuState implements CpuAssignments {
  readonly #onChange: () => void;
  #shared: CpuSet;
  readonly #entries: Map<string, Map<string, CpuSet>>;
  readonly #pods: Map<string, CpuSet>;

  constructor(onChange: () => void, { shared, entries, pods }: CpuAssignments = NO_ASSIGNMENTS) {
    this.#onChange = onChange;
    this.#shared = shared;
    this.#entries = new Map([...entries].map(([uid, containers]) => [uid, new Map(containers)]));
    this.#pods = new Map(pods);
  }

  /** The CPUs of all containers that have none of their own: upstream's default set. */
  get shared(): CpuSet {
    return this.#shared;
  }

  get entries(): CpuEntries {
    return this.#entries;
  }

  get pods(): ReadonlyMap<string, CpuSet> {
    return this.#pods;
  }

  of(uid: string, container: string): CpuSet | undefined {
    return this.#entries.get(uid)?.get(container);
  }

  setShared(cpus: CpuSet): void {
    this.#shared = cpus;
    this.#onChange();
  }

  set(uid: string, container: string, cpus: CpuSet): void {
    const own = this.#entries.get(uid) ?? new Map<string, CpuSet>();
    own.set(container, cpus);
    this.#entries.set(uid, own);
    this.#onChange();
  }

  setPod(uid: string, cpus: CpuSet): void {
    this.#pods.set(uid, cpus);
    this.#onChange();
  }

  delete(uid: string, container: string): void {
    const own = this.#entries.get(uid);
    own?.delete(container);
    if (own?.size === 0) this.#entries.delete(uid);
    this.#onChange();
  }

  deletePod(uid: string): void {
    this.#pods.delete(uid);
    this.#entries.delete(uid);
    this.#onChange();
  }
}
