// What a pod asks for as a whole. Init containers run one after the other beside the sidecars started before them, so
// the pod needs the larger of "all main containers and sidecars" and "the hungriest init container at its turn".
import { isSidecar, type Container, type Pod, type ResourceList, type ResourceRequirements } from './pod.ts';
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

/**
 * What a pod takes from others: what it asks for and, while it gives some of that back, what its status still shows. A limit
 * that cannot be lowered yet, or a container that was not told yet, holds it.
 */
export function heldRequests(pod: Pod): Resources {
  const { status } = pod;
  const shown = new Map(
    [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].map((s) => [s.name, s]),
  );
  const heldBy = (c: Container): ResourceRequirements | undefined => {
    const seen = isRunToCompletion(pod, c) ? undefined : shown.get(c.name);
    if (seen?.resources === undefined) return c.resources;
    return {
      ...c.resources,
      requests: largest(c.resources?.requests, seen.resources.requests, seen.allocatedResources),
    };
  };
  const total = new Map(podRequests(withResources(pod, heldBy, pod.spec.resources)));
  if (status?.resources === undefined) return total;
  // With the overhead, as the status has them.
  for (const name of RESIZABLE_RESOURCES)
    if (pod.spec.resources?.requests?.[name] !== undefined)
      for (const list of [status.resources.requests, status.allocatedResources])
        raiseAll(total, new Map([[name, quantity(list?.[name])]]));
  return total;
}

const isRunToCompletion = ({ spec }: Pod, container: Container): boolean =>
  !isSidecar(container) && (spec.initContainers ?? []).includes(container);

/** Of cpu and memory the largest of all lists; everything else is the first list's. */
function largest(first: ResourceList = {}, ...others: readonly (ResourceList | undefined)[]): ResourceList {
  const list: Record<string, string> = { ...first };
  for (const name of RESIZABLE_RESOURCES)
    for (const other of others) {
      const text = other?.[name];
      if (text !== undefined && quantity(text).nano > quantity(list[name]).nano) list[name] = text;
    }
  return list;
}

/** Resources that may be set for the pod as a whole. */
export const isPodLevelResource = (name: string): boolean =>
  name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');

/** Whether anything is set for the pod as a whole. */
export const hasPodLevelResources = ({ spec: { resources } }: Pod): boolean =>
  [...Object.keys(resources?.requests ?? {}), ...Object.keys(resources?.limits ?? {})].some(isPodLevelResource);

/** Only these can be resized in place. */
export const RESIZABLE_RESOURCES = ['memory', 'cpu'] as const;
export type ResizableResource = (typeof RESIZABLE_RESOURCES)[number];

/**
 * A limit binds the pod as a whole only when the pod itself or every one of its containers has one. To upstream an init
 * container has that of the sidecars before it, too.
 */
export function declaresLimit({ spec }: Pod, name: ResizableResource): boolean {
  const limited = (given: ResourceRequirements | undefined): boolean => quantity(given?.limits?.[name]).nano > 0n;
  if (limited(spec.resources)) return true;
  const init = spec.initContainers ?? [];
  const firstLimited = init.findIndex((c) => isSidecar(c) && limited(c.resources));
  const isCovered = (c: Container, i: number): boolean =>
    (firstLimited >= 0 && i > firstLimited) || limited(c.resources);
  return init.every(isCovered) && spec.containers.every((c) => limited(c.resources));
}

/** What is in force, as far as it was recorded. */
export type Actuated = {
  /** By name, with the limits they have from their pod. */
  readonly containers: ReadonlyMap<string, ResourceRequirements>;
  /** `spec.resources`. */
  readonly pod?: ResourceRequirements;
};

/** What a container runs with: a limit it does not have itself is that of its pod. */
export function withPodLimits(
  own: ResourceRequirements = {},
  podLevel: ResourceRequirements | undefined,
): ResourceRequirements {
  const inherited: Record<string, string> = {};
  for (const name of RESIZABLE_RESOURCES) {
    const shared = podLevel?.limits?.[name];
    if (shared !== undefined && quantity(shared).nano !== 0n && quantity(own.limits?.[name]).nano === 0n)
      inherited[name] = shared;
  }
  return Object.keys(inherited).length === 0 ? own : { ...own, limits: { ...own.limits, ...inherited } };
}

/** The resources whose request or limit differs. */
export const differingResources = (
  a: ResourceRequirements = {},
  b: ResourceRequirements = {},
): readonly ResizableResource[] => RESIZABLE_RESOURCES.filter((name) => !sameLists(a, b, name));

const sameLists = (a: ResourceRequirements, b: ResourceRequirements, name: string): boolean =>
  quantity(a.limits?.[name]).nano === quantity(b.limits?.[name]).nano &&
  quantity(a.requests?.[name]).nano === quantity(b.requests?.[name]).nano;

/** The pod with other resources in the places of its own: what it was granted, or what is in force. */
export function withResources(
  pod: Pod,
  ofContainer: (container: Container) => ResourceRequirements | undefined,
  podLevel: ResourceRequirements | undefined,
): Pod {
  const replaced = (container: Container): Container => {
    const { resources: _, ...rest } = container;
    const resources = ofContainer(container);
    return resources === undefined ? rest : { ...rest, resources };
  };
  const { resources: _, ...spec } = pod.spec;
  return {
    ...pod,
    spec: {
      ...spec,
      containers: spec.containers.map(replaced),
      ...(spec.initContainers !== undefined && { initContainers: spec.initContainers.map(replaced) }),
      ...(podLevel !== undefined && { resources: podLevel }),
    },
  };
}

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
