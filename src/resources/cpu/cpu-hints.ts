// From which NUMA nodes a number of CPUs could come. Pure.
import type { CpuSet } from '../../core/cpuset.ts';
import type { TopologyHint } from '../topology/hint-provider.ts';
import { numaCombinations } from '../../core/numa-combinations.ts';
import { cpusIn, unitsOf, type CpuTopology } from './cpu-topology.ts';

export type HintRequest = {
  readonly count: number;
  readonly available: CpuSet;
  /** CPUs the pod holds already, all of which must be used. */
  readonly reusable: CpuSet;
  readonly alignBySocket: boolean;
};

export function cpuHints(topology: CpuTopology, request: HintRequest): readonly TopologyHint[] {
  const ids = [...topology.units.numa.keys()].sort((a, b) => a - b);
  const allOn = countByNuma(topology, topology.cpus);
  const freeOn = countByNuma(topology, request.available);
  const reusableOn = countByNuma(topology, request.reusable);
  let smallest = ids.length;
  const fitting: (readonly number[])[] = [];
  for (const nodes of numaCombinations(ids)) {
    const sum = (counts: ReadonlyMap<number, number>): number =>
      nodes.reduce((total, node) => total + (counts.get(node) ?? 0), 0);
    if (sum(allOn) >= request.count) smallest = Math.min(smallest, nodes.length);
    const reused = sum(reusableOn);
    if (reused === request.reusable.size && reused + sum(freeOn) >= request.count) fitting.push(nodes);
  }
  return fitting.map((nodes) => ({
    numaNodes: nodes,
    preferred: nodes.length === smallest || (request.alignBySocket && touchesFewestSockets(topology, nodes, smallest)),
  }));
}

function countByNuma({ places }: CpuTopology, cpus: CpuSet): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const cpu of cpus) {
    const numa = places.get(cpu)?.numa;
    if (numa !== undefined) counts.set(numa, (counts.get(numa) ?? 0) + 1);
  }
  return counts;
}

function touchesFewestSockets(topology: CpuTopology, nodes: readonly number[], smallest: number): boolean {
  const { counts } = topology;
  const numasPerSocket = Math.floor(counts.numa / counts.socket);
  if (numasPerSocket === 0) return false;
  const sockets = unitsOf(topology, cpusIn(topology, topology.cpus, 'numa', new Set(nodes)), 'socket');
  return sockets.size === Math.ceil(smallest / numasPerSocket);
}
