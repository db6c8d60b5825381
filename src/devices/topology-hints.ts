// On which NUMA nodes a request for devices could be met. Pure.
import type { TopologyHint } from '../resources/topology/hint-provider.ts';
import type { Devices } from './device.ts';

export type HintInput = {
  readonly requested: number;
  /** All devices of the resource. */
  readonly devices: Devices;
  readonly free: Iterable<string>;
  /** Held by a finished init container of the same pod: they must be part of it. */
  readonly reusable: Iterable<string>;
  /** NUMA nodes of the machine. */
  readonly numaNodes: readonly number[];
};

export function deviceHints(input: HintInput): readonly TopologyHint[] {
  const { devices, requested } = input;
  const known = new Set(input.numaNodes);
  const nodesOf = (id: string): readonly number[] => (devices.get(id)?.nodes ?? []).filter((n) => known.has(n));
  const used = input.numaNodes.filter((n) => [...devices.values()].some((d) => d.nodes.includes(n)));
  const nodes = [...(used.length > 0 ? used : input.numaNodes)].sort((a, b) => a - b);
  const reusable = [...input.reusable].filter((id) => (devices.get(id)?.nodes ?? []).length > 0);
  const free = [...input.free];
  let smallest = nodes.length;
  const fitting: (readonly number[])[] = [];
  for (const mask of masksOf(nodes)) {
    const touches = (id: string): boolean => nodesOf(id).some((n) => mask.includes(n));
    if (mask.length < smallest && countOf(devices.keys(), touches) >= requested) smallest = mask.length;
    if (!reusable.every(touches)) continue;
    if (reusable.length + countOf(free, touches) >= requested) fitting.push(mask);
  }
  return fitting.map((numaNodes) => ({ numaNodes, preferred: numaNodes.length === smallest }));
}

const countOf = (ids: Iterable<string>, fits: (id: string) => boolean): number => {
  let count = 0;
  for (const id of ids) if (fits(id)) count++;
  return count;
};

/** Every combination of nodes that is not empty: small ones first, then in the order of their numbers. */
export function* masksOf(nodes: readonly number[]): Iterable<readonly number[]> {
  for (let size = 1; size <= nodes.length; size++) yield* combinations(nodes, size);
}

function* combinations(nodes: readonly number[], size: number): Iterable<readonly number[]> {
  if (size === 0) return void (yield []);
  for (const [index, node] of nodes.entries())
    for (const rest of combinations(nodes.slice(index + 1), size - 1)) yield [node, ...rest];
}
