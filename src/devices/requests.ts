// How many devices containers and pods ask for. Pure.
import { isSidecar, type Container, type Pod } from '../core/pod.ts';
import { quantity, toNumber } from '../core/quantity.ts';

export type DeviceRequests = ReadonlyMap<string, number>;

/** Whether the scheduler served this container's resource by a claim: then no plugin is asked. */
const isClaimed = (pod: Pod, container: Container, resource: string): boolean =>
  (pod.status?.extendedResourceClaimStatus?.requestMappings ?? []).some(
    (m) => m.containerName === container.name && m.resourceName === resource,
  );

/** By resource, in text order; only what plugins serve. */
export function containerRequests(
  pod: Pod,
  container: Container,
  isPluginResource: (name: string) => boolean,
): DeviceRequests {
  const wanted = Object.entries(container.resources?.limits ?? {})
    .filter(([name]) => isPluginResource(name) && !isClaimed(pod, container, name))
    .map(([name, text]): [string, number] => [name, toNumber(quantity(text))])
    .filter(([, count]) => count > 0);
  return new Map(wanted.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The most the pod has at any time: init containers one after the other beside the sidecars before them, then the rest. */
export function podRequests(pod: Pod, isPluginResource: (name: string) => boolean): DeviceRequests {
  const of = (container: Container): DeviceRequests => containerRequests(pod, container, isPluginResource);
  const running = new Map<string, number>();
  const peak = new Map<string, number>();
  const raise = (name: string, count: number): void => void peak.set(name, Math.max(peak.get(name) ?? 0, count));
  for (const container of pod.spec.initContainers ?? [])
    for (const [name, count] of of(container)) {
      const turn = (running.get(name) ?? 0) + count;
      raise(name, turn);
      if (isSidecar(container)) running.set(name, turn);
    }
  for (const container of pod.spec.containers)
    for (const [name, count] of of(container)) running.set(name, (running.get(name) ?? 0) + count);
  for (const [name, count] of running) raise(name, count);
  return peak;
}
