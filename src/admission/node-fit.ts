// Whether the pod's requests fit beside those of the pods already here.
import type { Node } from '../core/node.ts';
import type { Pod, PodSpec } from '../core/pod.ts';
import { heldRequests, podRequests, RESIZABLE_RESOURCES, resourcesOf, type Resources } from '../core/pod-resources.ts';
import { quantity, toMilli, toNumber } from '../core/quantity.ts';
import { isExtendedResource } from '../core/resource-names.ts';

/** Amounts are whole units, thousandths for `cpu`. */
export type Shortage = {
  readonly resource: string;
  readonly requested: number;
  readonly used: number;
  readonly capacity: number;
};

const amountOf = (resources: Resources, name: string): number => {
  const q = resources.get(name) ?? quantity('0');
  return name === 'cpu' ? toMilli(q) : toNumber(q);
};

/** Every admission adds up what all pods ask for: of each spec that is worked out once. */
const KNOWN = new WeakMap<PodSpec, Resources>();

function requestsOf(pod: Pod): Resources {
  let known = KNOWN.get(pod.spec);
  if (known === undefined) KNOWN.set(pod.spec, (known = podRequests(pod)));
  return known;
}

/** By object: a pod whose spec or status changed is another one. */
const HELD = new WeakMap<Pod, Resources>();

/** Who shows nothing else than it asks for holds that; who gives something back holds it until its status says less. */
function heldBy(pod: Pod): Resources {
  let known = HELD.get(pod);
  if (known === undefined) HELD.set(pod, (known = givesBack(pod) ? heldRequests(pod) : requestsOf(pod)));
  return known;
}

/** In doubt yes: it only saves adding up. */
function givesBack({ spec, status }: Pod): boolean {
  if (spec.resources !== undefined) return true;
  const asked = new Map(
    [...(spec.initContainers ?? []), ...spec.containers].map((c) => [c.name, c.resources?.requests]),
  );
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].some(
    ({ name, resources, allocatedResources }) =>
      [resources?.requests, allocatedResources].some((shown) =>
        RESIZABLE_RESOURCES.some((r) => shown?.[r] !== undefined && shown[r] !== asked.get(name)?.[r]),
      ),
  );
}

/** What a pod takes of a resource; every pod takes one of `pods`. */
export const requestOf = (pod: Pod, name: string): number => (name === 'pods' ? 1 : amountOf(requestsOf(pod), name));

const FIRST = ['cpu', 'memory', 'ephemeral-storage'];

/** In upstream's order: pods, cpu, memory, ephemeral-storage, then the others by name. */
export function shortagesOf(pod: Pod, others: readonly Pod[], node: Node): readonly Shortage[] {
  const allocatable = resourcesOf(node.status?.allocatable);
  const shortages: Shortage[] = [];
  const allowed = amountOf(allocatable, 'pods');
  if (others.length + 1 > allowed)
    shortages.push({ resource: 'pods', requested: 1, used: others.length, capacity: allowed });
  const requests = requestsOf(pod);
  const isWanted = (name: string): boolean => isAccounted(name) && amountOf(requests, name) > 0;
  const names = [...requests.keys()].filter((name) => isWanted(name) && !isClaimed(pod, name));
  if (names.length === 0) return shortages;
  const theirs = others.map((other) => ({ other, list: heldBy(other) }));
  names.sort((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
  for (const resource of names) {
    // A resource this node does not offer at all is not this node's business.
    if (isExtendedResource(resource) && !allocatable.has(resource)) continue;
    const requested = amountOf(requests, resource);
    const used = theirs.reduce(
      (sum, { other, list }) => sum + (isClaimed(other, resource) ? 0 : amountOf(list, resource)),
      0,
    );
    const capacity = amountOf(allocatable, resource);
    if (requested > capacity - used) shortages.push({ resource, requested, used, capacity });
  }
  return shortages;
}

/** Whether the scheduler served the resource by a claim: then it is not taken from what the node counts. */
const isClaimed = (pod: Pod, resource: string): boolean =>
  (pod.status?.extendedResourceClaimStatus?.requestMappings ?? []).some((m) => m.resourceName === resource);

const rankOf = (name: string): number => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);

const isAccounted = (name: string): boolean =>
  FIRST.includes(name) || name.startsWith('hugepages-') || name.startsWith('attachable-volumes-') || name.includes('/');

export const shortageMessage = (s: Shortage): string =>
  `Node didn't have enough resource: ${s.resource}, requested: ${s.requested}, used: ${s.used}, capacity: ${s.capacity}`;

/** Whether the node object tells anything of what the node has: one that was made anew by somebody else does not. */
export const hasCapacity = (node: Node): boolean => amountOf(resourcesOf(node.status?.allocatable), 'pods') > 0;

/** The node with at least these amounts allocatable: what a pod has already cannot be too much for it. */
export function withAtLeast(node: Node, amounts: ReadonlyMap<string, number>): Node {
  const known = resourcesOf(node.status?.allocatable);
  const missing = [...amounts].filter(([name, amount]) => amountOf(known, name) < amount);
  if (missing.length === 0) return node;
  const raised = Object.fromEntries(missing.map(([name, amount]) => [name, String(amount)]));
  return { ...node, status: { ...node.status, allocatable: { ...node.status?.allocatable, ...raised } } };
}
