// The static policy: who owns which CPUs. Keeps no files and calls nobody; `cpu-manager.ts` does.
import { formatCpuSet, type CpuSet } from '../../core/cpuset.ts';
import { isSidecar, uidOf, type Container, type Pod } from '../../core/pod.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { HintsByResource } from '../topology/hint-provider.ts';
import { cpuHints } from './cpu-hints.ts';
import { checkCpuOptions, type CpuOptions } from './cpu-options.ts';
import { exclusiveCpusOf, exclusiveCpusOfPod, type PodLevelOption } from './cpu-requests.ts';
import type { CpuState } from './cpu-state.ts';
import { cpusIn, unitsOf, wholeCores, type CpuTopology } from './cpu-topology.ts';
import { takeDistributed } from './take-distributed.ts';
import { takePacked } from './take-packed.ts';

export type StaticPolicyOptions = PodLevelOption & {
  readonly options: CpuOptions;
  /** The reservation for the system and the kubelet, rounded up. */
  readonly reservedCount: number;
  /** `reservedSystemCPUs`; empty: the policy chooses. */
  readonly reservedCpus: CpuSet;
  readonly topologyPolicy: string;
};

const NONE: CpuSet = new Set();

export class StaticPolicy {
  readonly name = 'static';
  readonly topology: CpuTopology;
  readonly reserved: CpuSet;
  readonly #o: StaticPolicyOptions;
  readonly #reservedCores: CpuSet;
  /** CPUs that finished init containers of a pod leave to its next containers. Of one pod at a time. */
  #reusable: { readonly uid: string; readonly cpus: CpuSet } | undefined;

  constructor(topology: CpuTopology, options: StaticPolicyOptions) {
    checkCpuOptions(options.options, topology, options.topologyPolicy);
    this.topology = topology;
    this.#o = options;
    this.reserved = options.reservedCpus.size > 0 ? options.reservedCpus : this.#chooseReserved();
    if (this.reserved.size !== options.reservedCount)
      throw new KubeletError(
        'invalid',
        `[cpumanager] unable to reserve the required amount of CPUs (size of ${formatCpuSet(this.reserved)} did not equal ${options.reservedCount})`,
      );
    for (const cpu of this.reserved)
      if (!topology.cpus.has(cpu))
        throw new KubeletError(
          'invalid',
          `[cpumanager] unable to build the reserved physical CPUs from the reserved set: unknown CPU ID: ${cpu}`,
        );
    this.#reservedCores = wholeCores(topology, this.reserved);
  }

  has(option: Parameters<CpuOptions['has']>[0]): boolean {
    return this.#o.options.has(option);
  }

  /** CPUs that exist for pods at all. */
  get allocatable(): CpuSet {
    return this.topology.cpus.difference(this.reserved);
  }

  /** CPUs that nobody owns. */
  available(state: CpuState): CpuSet {
    return state.shared.difference(this.reserved);
  }

  requested(pod: Pod, container: Container): number {
    return exclusiveCpusOf(pod, container, this.#o);
  }

  requestedByPod(pod: Pod): number {
    return exclusiveCpusOfPod(pod, this.#o);
  }

  /** Sets up a fresh state; refuses one that does not fit this machine and these settings. */
  validate(state: CpuState): void {
    const all = this.has('strict-cpu-reservation') ? this.allocatable : this.topology.cpus;
    if (state.shared.size === 0) {
      if (state.entries.size > 0) throw new KubeletError('invalid', 'default cpuset cannot be empty');
      return state.setShared(all);
    }
    this.#checkReserved(state.shared);
    for (const [uid, own] of state.entries)
      for (const [container, cpus] of own)
        if (!cpus.isDisjointFrom(state.shared))
          throw new KubeletError(
            'invalid',
            `pod: ${uid}, container: ${container} cpuset: "${formatCpuSet(cpus)}" overlaps with default cpuset "${formatCpuSet(state.shared)}"`,
          );
    let known: CpuSet = state.shared;
    for (const own of state.entries.values()) for (const cpus of own.values()) known = known.union(cpus);
    for (const cpus of state.pods.values()) known = known.union(cpus);
    if (known.size !== all.size || !known.isSubsetOf(all))
      throw new KubeletError(
        'invalid',
        `current set of available CPUs "${formatCpuSet(all)}" doesn't match with CPUs in state "${formatCpuSet(known)}"`,
      );
  }

  /** Gives the container its CPUs near the NUMA nodes. Returns them when they are new. */
  allocate(
    state: CpuState,
    pod: Pod,
    container: Container,
    numaNodes: readonly number[] | undefined,
  ): CpuSet | undefined {
    const count = this.requested(pod, container);
    if (count === 0) return undefined;
    this.checkAlignment(state, count);
    const uid = uidOf(pod);
    if (this.keeps(state, pod, container)) return undefined;
    const cpus = this.#choose(this.available(state).union(this.#reusableOf(uid)), count, numaNodes);
    state.setShared(state.shared.difference(cpus));
    state.set(uid, container.name, cpus);
    this.#updateReusable(pod, container, cpus);
    return cpus;
  }

  /** Whether the container has its CPUs already, from before a restart of the agent. */
  keeps(state: CpuState, pod: Pod, container: Container): boolean {
    const held = state.of(uidOf(pod), container.name);
    if (held !== undefined) this.#updateReusable(pod, container, held);
    return held !== undefined;
  }

  /** Takes the CPUs of a pod as a whole. */
  takeForPod(state: CpuState, uid: string, count: number, numaNodes: readonly number[] | undefined): CpuSet {
    this.checkAlignment(state, count);
    const cpus = this.#choose(this.available(state), count, numaNodes);
    state.setShared(state.shared.difference(cpus));
    state.setPod(uid, cpus);
    return cpus;
  }

  /** The container is gone. Returns the CPUs that are shared again. */
  release(state: CpuState, uid: string, container: string): CpuSet {
    const held = state.of(uid, container);
    if (held === undefined) return NONE;
    state.delete(uid, container);
    const siblings = [...(state.entries.get(uid)?.values() ?? [])];
    const ofPod = state.pods.get(uid);
    if (ofPod !== undefined) {
      if (siblings.length > 0) return NONE;
      state.setShared(state.shared.union(ofPod));
      state.deletePod(uid);
      return ofPod;
    }
    let freed: CpuSet = held;
    for (const cpus of siblings) freed = freed.difference(cpus);
    state.setShared(state.shared.union(freed));
    return freed;
  }

  hints(state: CpuState, pod: Pod, container: Container): HintsByResource {
    const count = this.requested(pod, container);
    if (count === 0) return {};
    const uid = uidOf(pod);
    const held = state.of(uid, container.name);
    if (held !== undefined) return { cpu: held.size === count ? this.#hints(count, held, NONE) : [] };
    return { cpu: this.#hints(count, this.available(state), this.#reusableOf(uid)) };
  }

  podHints(state: CpuState, pod: Pod): HintsByResource {
    const count = this.requestedByPod(pod);
    if (count === 0) return {};
    const uid = uidOf(pod);
    let held: CpuSet = NONE;
    for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
      const own = state.of(uid, container.name);
      if (own === undefined) continue;
      if (own.size !== this.requested(pod, container)) return { cpu: [] };
      held = held.union(own);
    }
    if (held.size === count) return { cpu: this.#hints(count, held, NONE) };
    return { cpu: this.#hints(count, this.available(state), this.#reusableOf(uid).union(held)) };
  }

  /** Chooses CPUs by topology with the policy's options. */
  take(available: CpuSet, count: number): CpuSet {
    const order = this.has('distribute-cpus-across-cores') ? 'spread' : 'packed';
    if (this.has('distribute-cpus-across-numa')) {
      const group = this.has('full-pcpus-only') ? this.topology.per.core : 1;
      return takeDistributed(this.topology, available, count, group, order);
    }
    return takePacked(this.topology, available, count, { order, uncore: this.has('prefer-align-cpus-by-uncorecache') });
  }

  /** For tests of hints: what a pod's init containers left. */
  setReusable(uid: string, cpus: CpuSet): void {
    this.#reusable = { uid, cpus };
  }

  checkAlignment(state: CpuState, count: number): void {
    if (!this.has('full-pcpus-only')) return;
    const perCore = this.topology.per.core;
    if (count % perCore !== 0) throw alignmentError(`requested ${count} cpus not multiple cpus per core = ${perCore}`);
    // A core with a reserved thread cannot be given as a whole.
    const whole = state.shared.difference(this.#reservedCores).size;
    if (count > whole)
      throw alignmentError(
        `not enough free physical CPUs: available physical CPUs = ${whole}, requested CPUs = ${count}, CPUs per core = ${perCore}`,
      );
  }

  #chooseReserved(): CpuSet {
    try {
      return this.take(this.topology.cpus, this.#o.reservedCount);
    } catch {
      // More than there are; the caller says how many are missing.
      return NONE;
    }
  }

  #checkReserved(shared: CpuSet): void {
    const both = this.reserved.intersection(shared);
    if (this.has('strict-cpu-reservation')) {
      if (both.size > 0)
        throw new KubeletError(
          'invalid',
          `some of strictly reserved cpus: "${formatCpuSet(both)}" are present in defaultCpuSet: "${formatCpuSet(shared)}"`,
        );
    } else if (both.size < this.reserved.size)
      throw new KubeletError(
        'invalid',
        `not all reserved cpus: "${formatCpuSet(this.reserved)}" are present in defaultCpuSet: "${formatCpuSet(shared)}"`,
      );
  }

  #choose(pool: CpuSet, count: number, numaNodes: readonly number[] | undefined): CpuSet {
    const near = numaNodes === undefined ? NONE : this.#near(pool, numaNodes);
    const aligned = this.take(near, Math.min(count, near.size));
    return aligned.union(this.take(pool.difference(aligned), count - aligned.size));
  }

  #near(pool: CpuSet, numaNodes: readonly number[]): CpuSet {
    const nodes = new Set(numaNodes);
    if (!this.has('align-by-socket')) return cpusIn(this.topology, pool, 'numa', nodes);
    const sockets = unitsOf(this.topology, cpusIn(this.topology, this.topology.cpus, 'numa', nodes), 'socket');
    return cpusIn(this.topology, pool, 'socket', sockets);
  }

  #hints(count: number, available: CpuSet, reusable: CpuSet): ReturnType<typeof cpuHints> {
    return cpuHints(this.topology, { count, available, reusable, alignBySocket: this.has('align-by-socket') });
  }

  #reusableOf(uid: string): CpuSet {
    return this.#reusable?.uid === uid ? this.#reusable.cpus : NONE;
  }

  /** A finished init container's CPUs can be used again by the pod; those of sidecars and main containers cannot. */
  #updateReusable(pod: Pod, container: Container, cpus: CpuSet): void {
    const uid = uidOf(pod);
    const before = this.#reusableOf(uid);
    const isInit = pod.spec.initContainers?.some((c) => c.name === container.name && !isSidecar(c)) === true;
    this.#reusable = { uid, cpus: isInit ? before.union(cpus) : before.difference(cpus) };
  }
}

const alignmentError = (why: string): KubeletError =>
  new KubeletError('exhausted', `SMT Alignment Error: ${why}`, { detail: { reason: 'SMTAlignmentError' } });
