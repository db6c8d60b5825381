// What a pod asks for as a whole. Init containers run one after the other beside the sidecars started before them, so
// the pod needs the larger of "all main containers and sidecars" and "the hungriest init container at its turn".
import { isSidecar, type Container, type Pod, type ResourceList } from './pod.ts';
import { addQuantities, formatQuantity, maxQuantity, quantity, type Quantity } from './quantity.ts';

export type Resources = ReadonlyMap<string, Quantity>;

export type AggregateOptions = {
  /** Leave out `spec.overhead`. */
  readonly withoutOverhead?: boolean;
  /** Leave out `spec.resources`, the pod-level figures. */
  readonly withoutPodLevel?: boolean;
};

export const resourcesOf = (list: ResourceList | undefined): Resources =>
  new Map(Object.entries(list ?? {}).map(([name, text]) => [name, quantity(text)]));

/** Canonical text form, in name order. Undefined when there is nothing. */
export const resourceListOf = (resources: Resources): ResourceList | undefined =>
  resources.size === 0
    ? undefined
    : Object.fromEntries(
        [...resources].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, q]) => [name, formatQuantity(q)]),
      );

export const podRequests = (pod: Pod, options: AggregateOptions = {}): Resources => {
  const total = aggregate(pod, (c) => c.resources?.requests);
  if (options.withoutPodLevel !== true) override(total, pod.spec.resources?.requests);
  if (options.withoutOverhead !== true) addAll(total, resourcesOf(pod.spec.overhead));
  return total;
};

export const podLimits = (pod: Pod, options: AggregateOptions = {}): Resources => {
  const total = aggregate(pod, (c) => c.resources?.limits);
  if (options.withoutPodLevel !== true) override(total, pod.spec.resources?.limits);
  if (options.withoutOverhead !== true) {
    // Overhead raises limits that exist; it does not make an unlimited pod limited.
    for (const [name, q] of resourcesOf(pod.spec.overhead)) if (total.has(name)) addTo(total, name, q);
  }
  return total;
};

/** Resources that may be set for the pod as a whole. */
export const isPodLevelResource = (name: string): boolean =>
  name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');

function aggregate(pod: Pod, pick: (container: Container) => ResourceList | undefined): Map<string, Quantity> {
  const running = new Map<string, Quantity>();
  for (const container of pod.spec.containers) addAll(running, resourcesOf(pick(container)));
  const sidecars = new Map<string, Quantity>();
  const initPeak = new Map<string, Quantity>();
  for (const container of pod.spec.initContainers ?? []) {
    const own = resourcesOf(pick(container));
    if (isSidecar(container)) {
      addAll(running, own);
      addAll(sidecars, own);
      raiseAll(initPeak, sidecars);
    } else {
      const turn = new Map(sidecars);
      addAll(turn, own);
      raiseAll(initPeak, turn);
    }
  }
  raiseAll(running, initPeak);
  return running;
}

function override(total: Map<string, Quantity>, list: ResourceList | undefined): void {
  for (const [name, q] of resourcesOf(list)) if (isPodLevelResource(name)) total.set(name, q);
}

function addTo(total: Map<string, Quantity>, name: string, q: Quantity): void {
  const old = total.get(name);
  total.set(name, old === undefined ? q : addQuantities(old, q));
}

function addAll(total: Map<string, Quantity>, more: Resources): void {
  for (const [name, q] of more) addTo(total, name, q);
}

function raiseAll(total: Map<string, Quantity>, floor: Resources): void {
  for (const [name, q] of floor) {
    const old = total.get(name);
    total.set(name, old === undefined ? q : maxQuantity(old, q));
  }
}
