// Quality of service: decides a pod's place in the cgroup tree, its oom_score_adj and its turn in eviction.
import { hasPodLevelResources, resourcesOf } from './pod-resources.ts';
import type { Pod, QosClass, ResourceRequirements } from './pod.ts';
import { compareQuantities } from './quantity.ts';

const COMPUTE = ['cpu', 'memory'] as const;

/** The class the API server recorded, or what the spec says. Pods keep their class for life. */
export const qosClassOf = (pod: Pod): QosClass => pod.status?.qosClass ?? computeQosClass(pod);

export function computeQosClass(pod: Pod): QosClass {
  if (pod.spec.resources !== undefined && hasPodLevelResources(pod)) return classOf([pod.spec.resources]);
  return classOf([...(pod.spec.initContainers ?? []), ...pod.spec.containers].map((c) => c.resources ?? {}));
}

function classOf(all: readonly ResourceRequirements[]): QosClass {
  let asks = false;
  let guaranteed = true;
  for (const requirements of all) {
    const requests = resourcesOf(requirements.requests);
    const limits = resourcesOf(requirements.limits);
    for (const name of COMPUTE) {
      const limit = limits.get(name);
      const request = requests.get(name) ?? limit;
      if ((request?.nano ?? 0n) > 0n || (limit?.nano ?? 0n) > 0n) asks = true;
      const full =
        limit !== undefined && limit.nano > 0n && request !== undefined && compareQuantities(request, limit) === 0;
      if (!full) guaranteed = false;
    }
  }
  if (!asks) return 'BestEffort';
  return guaranteed && all.length > 0 ? 'Guaranteed' : 'Burstable';
}
