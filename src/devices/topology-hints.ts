// On which NUMA nodes a request for devices could be met. Pure.
import { numaCombinations } from '../core/numa-combinations.ts';
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

/** Devices on the same nodes are alike here: a machine has many devices, and few places for them. */
type Place = { readonly nodes: readonly number[]; all: number; free: number; reusable: number };

export function deviceHints(input: HintInput): readonly TopologyHint[] {
  const { devices, requested } = input;
  const used = input.numaNodes.filter((n) => [...devices.values()].some((d) => d.nodes.includes(n)));
  const nodes = [...(used.length > 0 ? used : input.numaNodes)].sort((a, b) => a - b);
  const reusable = [...input.reusable].filter((id) => (devices.get(id)?.nodes ?? []).length > 0);
  const places = placesOf(input, reusable);
  let smallest = nodes.length;
  const fitting: (readonly number[])[] = [];
  for (const mask of numaCombinations(nodes)) {
    let [all, free, reused] = [0, 0, 0];
    for (const place of places) {
      if (!place.nodes.some((n) => mask.includes(n))) continue;
      all += place.all;
      free += place.free;
      reused += place.reusable;
    }
    if (mask.length < smallest && all >= requested) smallest = mask.length;
    if (reused === reusable.length && reused + free >= requested) fitting.push(mask);
  }
  return fitting.map((numaNodes) => ({ numaNodes, preferred: numaNodes.length === smallest }));
}

function placesOf({ devices, free, numaNodes }: HintInput, reusable: readonly string[]): readonly Place[] {
  const known = new Set(numaNodes);
  const places = new Map<string, Place>();
  const placeOf = (id: string): Place => {
    const nodes = (devices.get(id)?.nodes ?? []).filter((n) => known.has(n));
    const key = nodes.join();
    const place = places.get(key) ?? { nodes, all: 0, free: 0, reusable: 0 };
    places.set(key, place);
    return place;
  };
  for (const id of devices.keys()) placeOf(id).all++;
  for (const id of free) placeOf(id).free++;
  for (const id of reusable) placeOf(id).reusable++;
  return [...places.values()];
}
