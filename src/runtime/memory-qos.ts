// Memory QoS of a container on cgroup v2 (gate `MemoryQoS`): what reclaim leaves alone, and where throttling begins. Pure.
import type { Container, Pod } from '../core/pod.ts';
import { qosClassOf } from '../core/qos.ts';
import { bytesOf } from '../core/quantity.ts';

export type MemoryQosFacts = {
  /** `memoryThrottlingFactor`. */
  readonly throttlingFactor: number;
  /** `memoryReservationPolicy` is `TieredReservation`. */
  readonly tiered: boolean;
  /** The memory of all pods together; what a container without a limit could use. */
  readonly podMemoryBytes: () => number;
};

const PAGE = 4096;

/** Files of the container's cgroup. */
export function containerMemoryQos(pod: Pod, container: Container, facts: MemoryQosFacts): Record<string, string> {
  const request = bytesOf(container.resources?.requests?.['memory']);
  const limit = bytesOf(container.resources?.limits?.['memory']);
  const high = request === limit ? 0 : memoryHigh(request, limit, facts);
  return { ...reservation(pod, request, facts.tiered), ...(high > request && { 'memory.high': `${high}` }) };
}

function reservation(pod: Pod, request: number, tiered: boolean): Record<string, string> {
  if (!tiered || request === 0) return { 'memory.min': '0', 'memory.low': '0' };
  return qosClassOf(pod) === 'Guaranteed' ? { 'memory.min': `${request}` } : { 'memory.low': `${request}` };
}

/** Between what was asked for and what may be used, in whole pages. */
function memoryHigh(request: number, limit: number, { throttlingFactor, podMemoryBytes }: MemoryQosFacts): number {
  const top = limit === 0 ? podMemoryBytes() : limit;
  return top <= 0 ? 0 : Math.floor((request + (top - request) * throttlingFactor) / PAGE) * PAGE;
}
