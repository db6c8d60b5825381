// Capacity and allocatable of the node. Pure: facts and configuration in, resource lists out.
import type { Resources } from '../core/pod-resources.ts';
import {
  compareQuantities,
  formatQuantity,
  fromUnits,
  quantity,
  subtractQuantities,
  addQuantities,
  toUnits,
  tryParseQuantity,
  type Quantity,
} from '../core/quantity.ts';
import { KubeletError } from '../lib/errors.ts';
import type { MachineFacts } from '../host/machine.ts';

export type CapacityOptions = { readonly maxPods: number; readonly podsPerCore: number };

export type Reservations = {
  readonly kubeReserved: Resources;
  readonly systemReserved: Resources;
  /** `evictionHard`: signal → quantity or percentage. */
  readonly evictionHard: Readonly<Record<string, string>>;
};

const ZERO: Quantity = { nano: 0n, format: 'DecimalSI' };

export function nodeCapacity(machine: MachineFacts, rootFsBytes: number | undefined, o: CapacityOptions): Resources {
  const capacity = new Map<string, Quantity>([
    ['cpu', fromUnits(machine.cpus)],
    ['memory', fromUnits(machine.memoryBytes, 'BinarySI')],
  ]);
  for (const { sizeBytes, pages } of machine.hugePages)
    capacity.set(
      `hugepages-${formatQuantity(fromUnits(sizeBytes, 'BinarySI'))}`,
      fromUnits(sizeBytes * pages, 'BinarySI'),
    );
  const pods = o.podsPerCore > 0 ? Math.min(machine.cpus * o.podsPerCore, o.maxPods) : o.maxPods;
  capacity.set('pods', fromUnits(pods));
  if (rootFsBytes !== undefined) capacity.set('ephemeral-storage', fromUnits(rootFsBytes, 'BinarySI'));
  return capacity;
}

/** Processor time set aside is given by whole CPUs when those are named. */
export function reservedOf(
  kubeReserved: Readonly<Record<string, string>>,
  systemReserved: Readonly<Record<string, string>>,
  reservedCpus: readonly number[],
): Pick<Reservations, 'kubeReserved' | 'systemReserved'> {
  const parse = (list: Readonly<Record<string, string>>): Map<string, Quantity> =>
    new Map(Object.entries(list).map(([name, text]) => [name, quantity(text)]));
  const [kube, system] = [parse(kubeReserved), parse(systemReserved)];
  if (reservedCpus.length > 0) {
    kube.delete('cpu');
    system.set('cpu', fromUnits(reservedCpus.length));
  }
  return { kubeReserved: kube, systemReserved: system };
}

/** What pods may ask for: capacity without reservations, eviction thresholds and huge pages. */
export function nodeAllocatable(capacity: Resources, r: Reservations): Resources {
  return withoutHugePages(
    reduced(capacity, (name) => reservationOf(name, capacity, r)),
    capacity,
  );
}

/** What is kept from pods, as far as anything is. */
export const nodeReservation = (capacity: Resources, r: Reservations): Resources =>
  new Map(
    [...capacity.keys()]
      .map((name) => [name, reservationOf(name, capacity, r)] as const)
      .filter(([, kept]) => kept.nano !== 0n),
  );

/**
 * What the kubepods cgroup is limited to: memory kept back for eviction stays usable, and huge pages, which are counted apart,
 * take nothing from its memory.
 */
export const podsLimit = (capacity: Resources, r: Reservations, enforced: boolean): Resources =>
  enforced ? reduced(capacity, (name) => declared(name, r)) : capacity;

/** Refuses a configuration that reserves more than there is. */
export function checkReservations(capacity: Resources, r: Reservations): void {
  const problems: string[] = [];
  for (const [name, has] of capacity) {
    const reserved = reservationOf(name, capacity, r);
    if (compareQuantities(reserved, has) > 0)
      problems.push(
        `Resource "${name}" has a reservation of ${formatQuantity(reserved)} but capacity of ${formatQuantity(has)}. Expected capacity >= reservation.`,
      );
  }
  if (problems.length > 0)
    throw new KubeletError('invalid', `invalid Node Allocatable configuration. ${problems.join(' ')}`);
}

const declared = (name: string, r: Reservations): Quantity =>
  addQuantities(r.kubeReserved.get(name) ?? ZERO, r.systemReserved.get(name) ?? ZERO);

const reservationOf = (name: string, capacity: Resources, r: Reservations): Quantity =>
  addQuantities(declared(name, r), evictionReservation(name, capacity, r.evictionHard));

const EVICTION_SIGNAL: Readonly<Record<string, string>> = {
  memory: 'memory.available',
  'ephemeral-storage': 'nodefs.available',
};

function evictionReservation(
  name: string,
  capacity: Resources,
  evictionHard: Readonly<Record<string, string>>,
): Quantity {
  const threshold = evictionHard[EVICTION_SIGNAL[name] ?? ''];
  const has = capacity.get(name);
  // These two switch a threshold off: what nothing is evicted for is kept for nothing.
  if (threshold === undefined || has === undefined || ['0%', '100%'].includes(threshold)) return ZERO;
  return thresholdQuantity(threshold, toUnits(has)) ?? ZERO;
}

/** An eviction threshold against a capacity. Percentages are 32-bit floats and the amount is cut, as upstream's are. */
export function thresholdQuantity(threshold: string, capacity: bigint): Quantity | undefined {
  if (!threshold.endsWith('%')) return tryParseQuantity(threshold);
  const percent = Number(threshold.slice(0, -1));
  if (Number.isNaN(percent)) return undefined;
  const fraction = Math.fround(Math.fround(percent) / 100);
  return fromUnits(Math.trunc(Number(capacity) * fraction), 'BinarySI');
}

function reduced(capacity: Resources, by: (name: string) => Quantity): Map<string, Quantity> {
  const result = new Map<string, Quantity>();
  for (const [name, has] of capacity) result.set(name, atLeastZero(subtractQuantities(has, by(name))));
  return result;
}

function withoutHugePages(resources: Map<string, Quantity>, capacity: Resources): Resources {
  const memory = resources.get('memory');
  if (memory === undefined) return resources;
  let left = memory;
  for (const [name, pool] of capacity) if (name.startsWith('hugepages-')) left = subtractQuantities(left, pool);
  return resources.set('memory', atLeastZero({ ...left, format: memory.format }));
}

const atLeastZero = (q: Quantity): Quantity => (q.nano < 0n ? { ...q, nano: 0n } : q);
