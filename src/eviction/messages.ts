// What an evicted pod is told: the resource, the threshold, and which of its containers used more than they asked for.
import type { Pod } from '../core/pod.ts';
import { compareQuantities, formatQuantity, fromUnits, quantity, type Quantity } from '../core/quantity.ts';
import type { ContainerFigures, PodFigures } from './figures.ts';
import { memoryOf } from './ranking.ts';
import { SIGNALS, type Observations, type StarvedResource } from './signals.ts';
import { amountIn, type Threshold } from './thresholds.ts';

export type Explanation = { readonly message: string; readonly annotations: Readonly<Record<string, string>> };

export function explain(
  resource: StarvedResource,
  pod: Pod,
  figures: PodFigures | undefined,
  thresholds: readonly Threshold[],
  observations: Observations,
): Explanation {
  let message = `The node was low on resource: ${resource}. ${thresholdText(resource, thresholds, observations)}`;
  if (figures === undefined) return { message, annotations: {} };
  const pods: Record<string, string> = {};
  const podRequest = pod.spec.resources?.requests?.[resource];
  // Of a pod with a request of its own the use is always told, also where it is within the request.
  if (resource === 'memory' && podRequest !== undefined && figures.memory !== undefined) {
    const usage = fromUnits(memoryOf(figures), 'BinarySI');
    message += consumption('Pod', pod.metadata.name, usage, quantity(podRequest), resource);
    Object.assign(pods, { offending_pod: pod.metadata.name, offending_pod_usage: formatQuantity(usage) });
  }
  const offenders: string[] = [];
  const usages: string[] = [];
  const declared = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  for (const container of figures.containers) {
    const spec = declared.find((c) => c.name === container.name);
    const usage = usageOf(container, resource);
    if (spec === undefined || usage === undefined) continue;
    const request = quantity(spec.resources?.requests?.[resource] ?? '0');
    if (compareQuantities(usage, request) <= 0) continue;
    message += consumption('Container', container.name, usage, request, resource);
    offenders.push(container.name);
    usages.push(formatQuantity(usage));
  }
  return {
    message,
    annotations: {
      ...pods,
      offending_containers: offenders.join(','),
      offending_containers_usage: usages.join(','),
      starved_resource: resource,
    },
  };
}

const consumption = (what: string, name: string, usage: Quantity, request: Quantity, resource: string): string =>
  `${what} ${name} was using ${formatQuantity(usage)}, request is ${formatQuantity(request)}, has larger consumption of ${resource}. `;

function thresholdText(
  resource: StarvedResource,
  thresholds: readonly Threshold[],
  observations: Observations,
): string {
  const threshold = thresholds.find((t) => SIGNALS[t.signal].resource === resource);
  const seen = threshold === undefined ? undefined : observations.get(threshold.signal);
  if (threshold === undefined || seen === undefined) return '';
  const wanted = formatQuantity(amountIn(threshold.value, seen.capacity));
  return `Threshold quantity: ${wanted}, available: ${formatQuantity(seen.available)}. `;
}

function usageOf({ memory, rootfs, logs }: ContainerFigures, resource: StarvedResource): Quantity | undefined {
  if (resource === 'memory')
    return memory?.workingSetBytes === undefined ? undefined : fromUnits(memory.workingSetBytes, 'BinarySI');
  if (resource !== 'ephemeral-storage' || rootfs?.usedBytes === undefined || logs?.usedBytes === undefined)
    return undefined;
  return fromUnits(rootfs.usedBytes + logs.usedBytes, 'BinarySI');
}
