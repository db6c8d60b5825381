// The memory manager policy that the configuration asks for. Pure.
import type { Quantity } from '../../core/quantity.ts';
import type { NumaNode } from '../../host/topology/machine-topology.ts';
import { KubeletError } from '../../lib/errors.ts';
import { MemoryPolicy } from './memory-policy.ts';
import { reservedMemory, type MemoryReservation } from './reserved-memory.ts';

export type MemoryPolicyConfig = {
  readonly policy: string;
  readonly reservations: readonly MemoryReservation[];
  /** Kept for the node as a whole, by type. */
  readonly reservedOfNode: ReadonlyMap<string, Quantity>;
  readonly podLevelManagers: boolean;
};

/** Undefined for policy `None`. */
export function chooseMemoryPolicy(nodes: readonly NumaNode[], config: MemoryPolicyConfig): MemoryPolicy | undefined {
  const { policy, reservations, reservedOfNode } = config;
  if (policy === 'None') return undefined;
  if (policy === 'BestEffort')
    throw new KubeletError('invalid', 'policy "BestEffort" is not available for platform "linux"');
  if (policy !== 'Static') throw new KubeletError('invalid', `unknown policy: "${policy}"`);
  return new MemoryPolicy(nodes, reservedMemory(nodes, reservations, reservedOfNode), config);
}
