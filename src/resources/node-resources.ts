// The node's capacity and allocatable as node status, admission and the cgroup tree see them. Facts are read anew on
// `refresh`; between refreshes everybody sees the same numbers.
import { statfs } from 'node:fs/promises';
import type { ResourceList } from '../core/pod.ts';
import { resourceListOf, type Resources } from '../core/pod-resources.ts';
import { fromUnits, quantity, toNumber, type Quantity } from '../core/quantity.ts';
import type { MachineFacts } from '../host/machine.ts';
import { KubeletError } from '../lib/errors.ts';
import {
  checkReservations,
  nodeAllocatable,
  nodeCapacity,
  nodeReservation,
  podsLimit,
  reservedOf,
  type Reservations,
} from './allocatable.ts';

export type NodeResourcesOptions = {
  readonly rootDir: string;
  readonly maxPods: number;
  readonly podsPerCore: number;
  readonly kubeReserved: Readonly<Record<string, string>>;
  readonly systemReserved: Readonly<Record<string, string>>;
  /** `reservedSystemCPUs`, parsed. */
  readonly reservedCpus: readonly number[];
  readonly evictionHard: Readonly<Record<string, string>>;
  /** `--experimental-allocatable-ignore-eviction`: eviction thresholds are no reservation. */
  readonly ignoreEviction: boolean;
  /** `localStorageCapacityIsolation`: without it no ephemeral storage is reported. */
  readonly reportEphemeralStorage: boolean;
};

export type NodeResourcesDeps = {
  readonly machine: () => Promise<MachineFacts>;
};

/** Counts of devices by resource; a plugin that left for good counts none. */
export type DeviceAmounts = {
  readonly capacity: ReadonlyMap<string, number>;
  readonly allocatable: ReadonlyMap<string, number>;
};

export class NodeResources {
  readonly #deps: NodeResourcesDeps;
  readonly #o: NodeResourcesOptions;
  readonly #reservations: Reservations;
  #machine: MachineFacts | undefined;
  #capacity: Resources = new Map();
  #devices: (() => DeviceAmounts) | undefined;

  constructor(deps: NodeResourcesDeps, options: NodeResourcesOptions) {
    this.#deps = deps;
    this.#o = options;
    this.#reservations = {
      ...reservedOf(options.kubeReserved, options.systemReserved, options.reservedCpus),
      evictionHard: options.ignoreEviction ? {} : options.evictionHard,
    };
  }

  /** Reads the machine. Call it once before anything else asks; rejects when more is reserved than there is. */
  async refresh(): Promise<void> {
    const [machine, rootFsBytes] = await Promise.all([this.#deps.machine(), this.#rootFsBytes()]);
    const capacity = nodeCapacity(machine, rootFsBytes, this.#o);
    checkReservations(capacity, this.#reservations);
    this.#machine = machine;
    this.#capacity = capacity;
  }

  /** From now on what device plugins offer counts too. */
  addDevices(devices: () => DeviceAmounts): void {
    this.#devices = devices;
  }

  get machine(): MachineFacts {
    if (this.#machine === undefined) throw new KubeletError('internal', 'the machine has not been read yet');
    return this.#machine;
  }

  capacity(): Resources {
    return merged(this.#capacity, counts(this.#devices?.().capacity));
  }

  allocatable(): Resources {
    return merged(nodeAllocatable(this.#capacity, this.#reservations), counts(this.#devices?.().allocatable));
  }

  /** Memory of all pods together: what eviction keeps free counts, too. */
  podMemoryBytes(): number {
    return toNumber(this.kubepodsLimit(true).get('memory') ?? quantity('0'));
  }

  /** As node status wants them. */
  capacityList(): ResourceList {
    return resourceListOf(this.capacity()) ?? {};
  }

  allocatableList(): ResourceList {
    return resourceListOf(this.allocatable()) ?? {};
  }

  /** What is kept from pods, eviction thresholds included. Resources of which nothing is kept are left out. */
  reserved(): Resources {
    return nodeReservation(this.#capacity, this.#reservations);
  }

  get reservations(): Reservations {
    return this.#reservations;
  }

  /** What the kubepods cgroup is set to; process ids count here though no node status shows them. */
  kubepodsLimit(enforced: boolean): Resources {
    const { maxPids } = this.machine;
    const withPids = merged(this.#capacity, maxPids > 0 ? new Map([['pid', fromUnits(maxPids)]]) : undefined);
    return podsLimit(withPids, this.#reservations, enforced);
  }

  async #rootFsBytes(): Promise<number | undefined> {
    if (!this.#o.reportEphemeralStorage) return undefined;
    const fs = await statfs(this.#o.rootDir);
    return fs.blocks * fs.bsize;
  }
}

const merged = (base: Resources, more: Resources | undefined): Resources =>
  more === undefined ? base : new Map<string, Quantity>([...base, ...more]);

const counts = (amounts: ReadonlyMap<string, number> | undefined): Resources | undefined =>
  amounts === undefined ? undefined : new Map([...amounts].map(([name, count]) => [name, fromUnits(count)]));
