// What a pod's cgroup is set to. Pure.
import { UNLIMITED, type CgroupSettings } from '../host/cgroups/cgroups.ts';
import { declaresLimit, podLimits, podRequests, type Resources } from '../core/pod-resources.ts';
import type { Pod } from '../core/pod.ts';
import { qosClassOf } from '../core/qos.ts';
import { quantity, toMilli, toNumber, type Quantity } from '../core/quantity.ts';
import { MIN_SHARES, quotaOfMilli, sharesOfMilli } from './formulas.ts';

export type PodConfigOptions = {
  /** `cpuCFSQuota`; false also for pods that own their processors. */
  readonly enforceCpuLimits: boolean;
  readonly cpuPeriodUs: number;
  /** `podPidsLimit`; not positive means none. */
  readonly podPidsLimit: number;
  /** Page sizes the machine knows, in bytes. */
  readonly hugePageSizes: readonly number[];
  /** Memory QoS on cgroup v2 with `TieredReservation`: requested memory is kept from reclaim. */
  readonly reserveMemory?: boolean;
};

const amountOf = (resources: Resources, name: string): Quantity => resources.get(name) ?? quantity('0');

export function podCgroupSettings(pod: Pod, options: PodConfigOptions): CgroupSettings {
  const requests = podRequests(pod);
  return {
    ...computeSettings(pod, requests, options),
    hugePages: hugePageLimits(requests, options.hugePageSizes),
    ...(options.podPidsLimit > 0 && { pidsMax: options.podPidsLimit }),
    ...(options.reserveMemory === true && memoryReservation(pod, requests)),
  };
}

/** Hard for Guaranteed pods, soft for the others. */
function memoryReservation(pod: Pod, requests: Resources): CgroupSettings {
  const bytes = toNumber(amountOf(requests, 'memory'));
  const file = qosClassOf(pod) === 'Guaranteed' ? 'memory.min' : 'memory.low';
  return bytes > 0 ? { unified: { [file]: `${bytes}` } } : {};
}

function computeSettings(pod: Pod, requests: Resources, options: PodConfigOptions): CgroupSettings {
  const qos = qosClassOf(pod);
  if (qos === 'BestEffort') return { cpuShares: MIN_SHARES };
  const limits = podLimits(pod);
  const cpuLimited = qos === 'Guaranteed' || declaresLimit(pod, 'cpu');
  const memoryLimited = qos === 'Guaranteed' || declaresLimit(pod, 'memory');
  const quota = cpuLimited ? quotaOfMilli(toMilli(amountOf(limits, 'cpu')), options.cpuPeriodUs) : 0;
  const memory = memoryLimited ? toNumber(amountOf(limits, 'memory')) : 0;
  return {
    cpuShares: sharesOfMilli(toMilli(amountOf(requests, 'cpu'))),
    cpuQuotaUs: options.enforceCpuLimits && quota > 0 ? quota : UNLIMITED,
    cpuPeriodUs: options.cpuPeriodUs,
    memoryBytes: memory > 0 ? memory : UNLIMITED,
  };
}

/** Huge pages are never overcommitted: sizes a pod did not ask for are closed to it. */
function hugePageLimits(requests: Resources, sizes: readonly number[]): ReadonlyMap<number, number> {
  const limits = new Map<number, number>(sizes.map((size) => [size, 0]));
  for (const [name, amount] of requests) {
    if (!name.startsWith('hugepages-')) continue;
    const size = toNumber(quantity(name.slice('hugepages-'.length)));
    if (limits.has(size)) limits.set(size, toNumber(amount));
  }
  return limits;
}

/** cpu.shares of the burstable tier: what all its pods asked for together. */
export const burstableShares = (pods: readonly Pod[]): number =>
  sharesOfMilli(pods.reduce((sum, pod) => sum + burstableMilli(pod), 0));

/** Added up with every change of any pod: what one of them asks for is worked out once. */
const KNOWN_MILLI = new WeakMap<Pod, number>();

function burstableMilli(pod: Pod): number {
  const known = KNOWN_MILLI.get(pod);
  if (known !== undefined) return known;
  const milli = qosClassOf(pod) === 'Burstable' ? toMilli(amountOf(podRequests(pod), 'cpu')) : 0;
  KNOWN_MILLI.set(pod, milli);
  return milli;
}

/** Settings from a plain resource list: the kubepods tier and the reserved cgroups. */
export function settingsOfResources(resources: Resources, compressibleOnly = false): CgroupSettings {
  const [cpu, memory, pids] = [resources.get('cpu'), resources.get('memory'), resources.get('pid')];
  if (compressibleOnly) return cpu === undefined ? {} : { cpuShares: sharesOfMilli(toMilli(cpu)) };
  const hugePages = new Map(
    [...resources]
      .filter(([name]) => name.startsWith('hugepages-'))
      .map(([name, amount]) => [toNumber(quantity(name.slice('hugepages-'.length))), toNumber(amount)]),
  );
  return {
    ...(cpu !== undefined && { cpuShares: sharesOfMilli(toMilli(cpu)) }),
    ...(memory !== undefined && { memoryBytes: toNumber(memory) }),
    ...(pids !== undefined && { pidsMax: toNumber(pids) }),
    ...(hugePages.size > 0 && { hugePages }),
  };
}
