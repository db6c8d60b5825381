// Which free devices a container gets: those it may reuse first, then those near its NUMA nodes, then what its plugin
// prefers, then the rest. Pure; ids of equal standing are taken in text order.
import { KubeletError } from '../lib/errors.ts';
import type { Devices } from './device.ts';

export type ChoiceInput = {
  readonly resource: string;
  readonly needed: number;
  /** Held by a finished init container of the same pod. */
  readonly reusable: Iterable<string>;
  /** Healthy and given to nobody. */
  readonly free: Iterable<string>;
  readonly devices: Devices;
  /** NUMA nodes to stay near to; undefined for no preference. */
  readonly affinity: readonly number[] | undefined;
};

/** What is settled, and what the plugin may be asked about before the rest is. */
export type Choice = {
  readonly taken: readonly string[];
  readonly question?: Question;
};

export type Question = {
  readonly resource: string;
  /** All devices the container is to have in the end. */
  readonly size: number;
  readonly available: readonly string[];
  readonly mustInclude: readonly string[];
  /** Of the preferred ones only these count. */
  readonly candidates: readonly string[];
  /** In this order when the plugin has no preference. */
  readonly order: readonly string[];
};

/** Throws when there are too few. */
export function beginChoice(input: ChoiceInput): Choice {
  const { resource, needed } = input;
  const reused = sorted(input.reusable).slice(0, needed);
  const missing = needed - reused.length;
  if (missing === 0) return { taken: reused };
  const free = sorted(input.free).filter((id) => !reused.includes(id));
  if (free.length < missing)
    throw new KubeletError(
      'exhausted',
      `requested number of devices unavailable for ${resource}. Requested: ${missing}, Available: ${free.length}`,
    );
  const { aligned, unaligned, anywhere } = byAffinity(free, input.devices, input.affinity);
  const ask = (taken: readonly string[], candidates: readonly string[], order: readonly string[]): Choice => ({
    taken,
    question: {
      resource,
      size: needed,
      available: sorted([...candidates, ...taken]),
      mustInclude: taken,
      candidates,
      order,
    },
  });
  if (missing < aligned.length) return ask(reused, aligned, aligned);
  const taken = [...reused, ...aligned];
  if (taken.length === needed) return { taken };
  const rest = [...unaligned, ...anywhere];
  return ask(taken, rest, rest);
}

/** `preferred`: the plugin's answer; empty when it was not asked. */
export function finishChoice({ taken, question }: Choice, preferred: readonly string[]): readonly string[] {
  if (question === undefined) return taken;
  const wanted = preferred.filter((id) => question.candidates.includes(id));
  const chosen = new Set([...taken, ...wanted, ...question.order]);
  return [...chosen].slice(0, question.size);
}

const sorted = (ids: Iterable<string>): string[] => [...new Set(ids)].sort();

type Split = {
  readonly aligned: readonly string[];
  readonly unaligned: readonly string[];
  /** Of no NUMA node, or with nothing to align to. */
  readonly anywhere: readonly string[];
};

function byAffinity(free: readonly string[], devices: Devices, affinity: readonly number[] | undefined): Split {
  if (affinity === undefined || !hasTopology(devices)) return { aligned: [], unaligned: [], anywhere: free };
  const nodesOf = (id: string): readonly number[] => devices.get(id)?.nodes ?? [];
  const isNear = (id: string): boolean => nodesOf(id).some((node) => affinity.includes(node));
  return {
    aligned: free.filter(isNear),
    unaligned: free.filter((id) => nodesOf(id).length > 0 && !isNear(id)),
    anywhere: free.filter((id) => nodesOf(id).length === 0),
  };
}

/** Whether any of them is near some NUMA node. */
export const hasTopology = (devices: Devices): boolean => [...devices.values()].some((d) => d.nodes.length > 0);
