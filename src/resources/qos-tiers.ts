// What the cgroups of the QoS tiers are set to, from the pods in them. Pure.
import type { Pod, QosClass } from '../core/pod.ts';
import { podRequests } from '../core/pod-resources.ts';
import { qosClassOf } from '../core/qos.ts';
import { quantity, toNumber } from '../core/quantity.ts';
import type { CgroupSettings } from '../host/cgroups/cgroups.ts';
import { burstableShares } from './pod-config.ts';

export type QosTierOptions = {
  /** Gate `MemoryQoS` on cgroup v2: whether memory is reserved by tiers (`memoryReservationPolicy`). Undefined: off. */
  readonly memoryReservation: 'None' | 'TieredReservation' | undefined;
  /** Gate `QOSReserved`: per cent of requested memory that lower tiers cannot have (`qosReserved`). */
  readonly reservedPercent: number | undefined;
};

export type QosTierSettings = {
  /** The tree above all pods, the tier of Guaranteed ones. */
  readonly Guaranteed: CgroupSettings;
  readonly Burstable: CgroupSettings;
  /** Its weight is the least there is and never changes. */
  readonly BestEffort: CgroupSettings;
};

/** Memory that the pods of each tier asked for. */
export type RequestedMemory = { readonly guaranteed: number; readonly burstable: number };

export function requestedMemory(pods: readonly Pod[]): RequestedMemory {
  const sum = (qos: QosClass): number =>
    pods
      .filter((pod) => qosClassOf(pod) === qos)
      .reduce((total, pod) => total + toNumber(podRequests(pod).get('memory') ?? quantity('0')), 0);
  return { guaranteed: sum('Guaranteed'), burstable: sum('Burstable') };
}

/** `podMemoryBytes`: what all pods together can have. */
export function qosTierSettings(pods: readonly Pod[], podMemoryBytes: number, o: QosTierOptions): QosTierSettings {
  const needsMemory = o.memoryReservation !== undefined || o.reservedPercent !== undefined;
  const requested = needsMemory ? requestedMemory(pods) : { guaranteed: 0, burstable: 0 };
  const limits = tierLimits(requested, podMemoryBytes, o.reservedPercent);
  const kept = protectedMemory(requested, o.memoryReservation);
  return {
    Guaranteed: { ...kept.guaranteed },
    Burstable: { cpuShares: burstableShares(pods), ...limits.burstable, ...kept.burstable },
    BestEffort: { ...limits.bestEffort },
  };
}

/** A tier may not use what the tiers above it asked for, to the given share. */
function tierLimits(
  { guaranteed, burstable }: RequestedMemory,
  podMemoryBytes: number,
  percent: number | undefined,
): { readonly burstable?: CgroupSettings; readonly bestEffort?: CgroupSettings } {
  if (percent === undefined || podMemoryBytes <= 0) return {};
  const forBurstable = podMemoryBytes - Math.trunc((guaranteed * percent) / 100);
  const forBestEffort = forBurstable - Math.trunc((burstable * percent) / 100);
  return { burstable: { memoryBytes: forBurstable }, bestEffort: { memoryBytes: forBestEffort } };
}

/** A parent has to cover what its children keep from reclaim. */
function protectedMemory(
  { guaranteed, burstable }: RequestedMemory,
  policy: QosTierOptions['memoryReservation'],
): { readonly guaranteed?: CgroupSettings; readonly burstable?: CgroupSettings } {
  if (policy === undefined) return {};
  const [min, low] = policy === 'None' ? [0, 0] : [guaranteed + burstable, burstable];
  return { guaranteed: { unified: { 'memory.min': `${min}` } }, burstable: { unified: { 'memory.low': `${low}` } } };
}

/** `50%` as 50; undefined when there is none. */
export const percentOf = (text: string | undefined): number | undefined => {
  const digits = /^(\d+)%$/.exec(text ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
};
