// `reservedMemory`: how much of each NUMA node is kept from pods. Has to add up to what is reserved for the node as a
// whole. Pure.
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  quantity,
  toNumber,
  type Quantity,
} from '../../core/quantity.ts';
import type { NumaNode } from '../../host/topology/machine-topology.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { ReservedMemory } from './machine-memory.ts';

export type MemoryReservation = { readonly numaNode: number; readonly limits: Readonly<Record<string, string>> };

const NOTHING: Quantity = { nano: 0n, format: 'DecimalSI' };
const isMemoryType = (name: string): boolean => name === 'memory' || name.startsWith('hugepages-');

/** `reservedOfNode`: kube and system reserved and the hard eviction threshold, by type. */
export function reservedMemory(
  nodes: readonly NumaNode[],
  reservations: readonly MemoryReservation[],
  reservedOfNode: ReadonlyMap<string, Quantity>,
): ReservedMemory {
  const reserved = new Map<number, Map<string, number>>(nodes.map(({ id }) => [id, new Map()]));
  const totals = new Map<string, Quantity>();
  for (const { numaNode, limits } of reservations) {
    const own = reserved.get(numaNode);
    if (own === undefined)
      throw new KubeletError(
        'invalid',
        `the reserved memory configuration references a NUMA node ${numaNode} that does not exist on this machine`,
      );
    for (const [type, text] of Object.entries(limits)) {
      own.set(type, toNumber(quantity(text)));
      totals.set(type, addQuantities(quantity(text), totals.get(type) ?? NOTHING));
    }
  }
  for (const type of new Set([...totals.keys(), ...[...reservedOfNode.keys()].filter(isMemoryType)])) {
    const [given, needed] = [totals.get(type) ?? NOTHING, reservedOfNode.get(type) ?? NOTHING];
    if (compareQuantities(given, needed) !== 0)
      throw new KubeletError(
        'invalid',
        `the total amount "${formatQuantity(given)}" of type "${type}" is not equal to the value "${formatQuantity(needed)}" determined by Node Allocatable feature`,
      );
  }
  return reserved;
}
