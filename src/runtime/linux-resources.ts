// Requests and limits as the runtime wants them: shares, quota, bytes and the order in which the kernel kills.
import type { LinuxContainerResources } from '../cri/gen/cri.ts';
import { isCriticalPod, isSidecar, type Container, type Pod, type ResourceList } from '../core/pod.ts';
import { podLimits, podRequests, resourcesOf, withPodLimits, type Resources } from '../core/pod-resources.ts';
import { qosClassOf } from '../core/qos.ts';
import { containerMemoryQos, type MemoryQosFacts } from './memory-qos.ts';
import { quantity, toMilli, toNumber, type Quantity } from '../core/quantity.ts';

export type LinuxResources = Partial<LinuxContainerResources>;

export type ResourceFacts = {
  readonly cgroupVersion: 1 | 2;
  readonly cpuCfsQuota: boolean;
  readonly cpuCfsPeriodUs: number;
  readonly memoryCapacityBytes: number;
  readonly swapCapacityBytes: number;
  readonly swapBehavior: 'NoSwap' | 'LimitedSwap';
  /** Whether the kernel limits swap per cgroup. */
  readonly swapAccounting: boolean;
  readonly singleProcessOomKill: boolean;
  /** As the runtime names them: `2MB`, `1GB`. */
  readonly hugePageSizes: readonly string[];
  /** Set where memory QoS is on. */
  readonly memoryQos?: MemoryQosFacts;
};

const MIN_SHARES = 2;
const MAX_SHARES = 262_144;
const MIN_QUOTA_US = 1000;
const GUARANTEED_OOM = -997;
const BEST_EFFORT_OOM = 1000;

export const milliToShares = (milli: number): number =>
  milli === 0 ? MIN_SHARES : Math.min(Math.max(Math.trunc((milli * 1024) / 1000), MIN_SHARES), MAX_SHARES);

export const milliToQuota = (milli: number, periodUs: number): number =>
  milli === 0 ? 0 : Math.max(Math.trunc((milli * periodUs) / 1000), MIN_QUOTA_US);

const milli = (q: Quantity | undefined): number => (q === undefined ? 0 : toMilli(q));
const bytes = (q: Quantity | undefined): number => (q === undefined ? 0 : toNumber(q));

/** Shares come from the request; a limit without a request counts as one. */
function cpuAndMemory(requests: Resources, limits: Resources, facts: ResourceFacts): LinuxResources {
  const requested = requests.get('cpu') ?? limits.get('cpu');
  return {
    cpuShares: milliToShares(milli(requested)),
    ...(facts.cpuCfsQuota
      ? { cpuPeriod: facts.cpuCfsPeriodUs, cpuQuota: milliToQuota(milli(limits.get('cpu')), facts.cpuCfsPeriodUs) }
      : {}),
    memoryLimitInBytes: bytes(limits.get('memory')),
  };
}

const unifiedOom = (facts: ResourceFacts): Record<string, string> =>
  facts.cgroupVersion === 2 && !facts.singleProcessOomKill ? { 'memory.oom.group': '1' } : {};

/** What the pod as a whole gets, without its overhead. A pod of which a container owns its CPUs is not throttled. */
export function sandboxResources(pod: Pod, facts: ResourceFacts, exclusiveCpus = false): LinuxResources {
  const base = cpuAndMemory(
    podRequests(pod, { withoutOverhead: true }),
    podLimits(pod, { withoutOverhead: true }),
    facts,
  );
  return {
    ...base,
    ...(exclusiveCpus && facts.cpuCfsQuota ? { cpuQuota: -1 } : {}),
    ...(facts.cgroupVersion === 2 ? { unified: unifiedOom(facts) } : {}),
  };
}

/** Request and limit are the same thing for the overhead; without one the message is empty. */
export function sandboxOverhead(pod: Pod, facts: ResourceFacts): LinuxResources {
  const overhead = resourcesOf(pod.spec.overhead);
  return overhead.size === 0
    ? {}
    : {
        ...cpuAndMemory(overhead, overhead, facts),
        ...(facts.cgroupVersion === 2 ? { unified: unifiedOom(facts) } : {}),
      };
}

export type ContainerResourceOptions = {
  /** Pinned containers are not throttled. */
  readonly exclusiveCpus?: boolean;
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
};

export function containerResources(
  pod: Pod,
  container: Container,
  facts: ResourceFacts,
  options: ContainerResourceOptions = {},
): LinuxResources {
  const requests = resourcesOf(container.resources?.requests);
  const limits = resourcesOf(withPodLimits(container.resources, pod.spec.resources).limits);
  const base = cpuAndMemory(requests, limits, facts);
  const memory = base.memoryLimitInBytes ?? 0;
  return {
    ...base,
    ...(options.exclusiveCpus === true && facts.cpuCfsQuota ? { cpuQuota: -1 } : {}),
    oomScoreAdj: oomScoreAdj(pod, container, facts.memoryCapacityBytes),
    hugepageLimits: hugePageLimits(
      { ...pod.spec.resources?.limits, ...container.resources?.limits },
      facts.hugePageSizes,
    ),
    ...(options.cpusetCpus ? { cpusetCpus: options.cpusetCpus } : {}),
    ...(options.cpusetMems ? { cpusetMems: options.cpusetMems } : {}),
    ...swapAndOom(pod, container, memory, facts),
  };
}

function swapAndOom(pod: Pod, container: Container, memoryLimit: number, facts: ResourceFacts): LinuxResources {
  if (facts.cgroupVersion === 1)
    return memoryLimit > 0 && facts.swapAccounting ? { memorySwapLimitInBytes: memoryLimit } : {};
  const swap = facts.swapAccounting ? { 'memory.swap.max': String(swapBytes(pod, container, facts)) } : {};
  const qos = facts.memoryQos === undefined ? {} : containerMemoryQos(pod, container, facts.memoryQos);
  return { unified: { ...unifiedOom(facts), ...swap, ...qos } };
}

/** Whether a container may swap: one of a Burstable pod that asks for less memory than it may use. */
export function maySwap(
  pod: Pod,
  container: Container,
  facts: Pick<ResourceFacts, 'cgroupVersion' | 'swapBehavior' | 'swapAccounting'>,
): boolean {
  const limit = bytes(resourcesOf(container.resources?.limits).get('memory'));
  return (
    facts.swapBehavior === 'LimitedSwap' &&
    facts.cgroupVersion === 2 &&
    facts.swapAccounting &&
    qosClassOf(pod) === 'Burstable' &&
    !isCriticalPod(pod) &&
    memoryRequest(container) !== limit
  );
}

/** In proportion to its memory request. */
function swapBytes(pod: Pod, container: Container, facts: ResourceFacts): number {
  const share = memoryRequest(container) / facts.memoryCapacityBytes;
  // More than the machine has is asked for in vain.
  if (!maySwap(pod, container, facts) || facts.memoryCapacityBytes <= 0 || share > 1) return 0;
  return Math.floor(share * facts.swapCapacityBytes);
}

const PAGE_UNITS: readonly (readonly [suffix: string, bytes: number])[] = [
  ['GB', 2 ** 30],
  ['MB', 2 ** 20],
  ['KB', 2 ** 10],
];

/** `hugepages-2Mi` → `2MB`. */
export function pageSizeOf(resource: string): string | undefined {
  const size = bytes(quantity(resource.slice('hugepages-'.length)));
  const unit = PAGE_UNITS.find(([, scale]) => size >= scale && size % scale === 0);
  return unit === undefined ? undefined : `${size / unit[1]}${unit[0]}`;
}

function hugePageLimits(
  limits: ResourceList | undefined,
  sizes: readonly string[],
): { pageSize: string; limit: number }[] {
  const asked = new Map<string, number>();
  for (const [name, text] of Object.entries(limits ?? {})) {
    const size = name.startsWith('hugepages-') ? pageSizeOf(name) : undefined;
    if (size !== undefined) asked.set(size, bytes(quantity(text)));
  }
  return sizes.map((pageSize) => ({ pageSize, limit: asked.get(pageSize) ?? 0 }));
}

/** The kernel kills the highest first: those who asked for little memory before those who asked for much. */
export function oomScoreAdj(pod: Pod, container: Container, capacityBytes: number): number {
  if (isCriticalPod(pod) && pod.spec.priorityClassName === 'system-node-critical') return GUARANTEED_OOM;
  switch (qosClassOf(pod)) {
    case 'Guaranteed':
      return GUARANTEED_OOM;
    case 'BestEffort':
      return BEST_EFFORT_OOM;
    default:
      break;
  }
  const own = burstableScore(pod, memoryRequest(container), capacityBytes);
  if (!(pod.spec.initContainers ?? []).some((c) => c.name === container.name && isSidecar(c))) return own;
  const smallest = Math.min(...pod.spec.containers.map(memoryRequest));
  return Math.min(own, burstableScore(pod, Number.isFinite(smallest) ? smallest : 0, capacityBytes));
}

const memoryRequest = (container: Container): number => bytes(resourcesOf(container.resources?.requests).get('memory'));

function burstableScore(pod: Pod, requestBytes: number, capacityBytes: number): number {
  if (capacityBytes <= 0) return BEST_EFFORT_OOM - 1;
  const score = BEST_EFFORT_OOM - Math.trunc((1000 * (requestBytes + podLevelShare(pod))) / capacityBytes);
  if (score < 1000 + GUARANTEED_OOM) return 1000 + GUARANTEED_OOM;
  return score === BEST_EFFORT_OOM ? BEST_EFFORT_OOM - 1 : score;
}

/** What the pod-level request leaves over its containers' own, in equal parts. */
function podLevelShare(pod: Pod): number {
  const podLevel = bytes(resourcesOf(pod.spec.resources?.requests).get('memory'));
  if (podLevel === 0) return 0;
  const own = bytes(podRequests(pod, { withoutPodLevel: true, withoutOverhead: true }).get('memory'));
  const sharing = pod.spec.containers.length + (pod.spec.initContainers ?? []).length;
  return Math.max(0, Math.trunc((podLevel - own) / sharing));
}
