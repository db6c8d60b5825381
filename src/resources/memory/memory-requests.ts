// How much memory of each type a container or a pod is to have of particular NUMA nodes. Pure.
import { hasPodLevelResources } from '../../core/pod-resources.ts';
import { isSidecar, type Container, type Pod, type ResourceList } from '../../core/pod.ts';
import { bytesOf } from '../../core/quantity.ts';
import { asksForItsLimits, type PodLevelOption } from '../cpu/cpu-requests.ts';

/** Bytes by type. */
export type MemoryRequests = ReadonlyMap<string, number>;

const isMemoryType = (name: string): boolean => name === 'memory' || name.startsWith('hugepages-');

const memoryIn = (list: ResourceList | undefined): Map<string, number> =>
  new Map(
    Object.entries(list ?? {})
      .filter(([name]) => isMemoryType(name))
      .map(([name, text]): [string, number] => [name, bytesOf(text)])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

export const memoryRequestsOf = (
  pod: Pod,
  container: Container,
  { podLevelManagers }: PodLevelOption,
): MemoryRequests =>
  podLevelManagers && hasPodLevelResources(pod) && !asksForItsLimits(container)
    ? new Map()
    : memoryIn(container.resources?.requests);

/** Only types that a main container asks for count, as upstream has it. */
export function memoryRequestsOfPod(pod: Pod, option: PodLevelOption): MemoryRequests {
  if (option.podLevelManagers && hasPodLevelResources(pod))
    return new Map([...memoryIn(pod.spec.resources?.requests)].filter(([, bytes]) => bytes > 0));
  const sidecars = new Map<string, number>();
  const peak = new Map<string, number>();
  for (const container of pod.spec.initContainers ?? [])
    for (const [type, bytes] of memoryRequestsOf(pod, container, option)) {
      const beside = sidecars.get(type) ?? 0;
      if (isSidecar(container)) sidecars.set(type, beside + bytes);
      else peak.set(type, Math.max(peak.get(type) ?? 0, beside + bytes));
    }
  const main = new Map<string, number>();
  for (const container of pod.spec.containers)
    for (const [type, bytes] of memoryRequestsOf(pod, container, option)) main.set(type, (main.get(type) ?? 0) + bytes);
  return new Map(
    [...main].map(([type, bytes]) => [type, Math.max(bytes + (sidecars.get(type) ?? 0), peak.get(type) ?? 0)]),
  );
}
