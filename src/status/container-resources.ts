// The resources a container's status shows: what was allocated, corrected by what the runtime really applied.
import type { Container, ContainerStatus, ResourceList, ResourceRequirements } from '../core/pod.ts';
import { formatQuantity, fromMilli, fromUnits, milliOf, quantity } from '../core/quantity.ts';
import type { ObservedContainer } from '../core/snapshot.ts';

const MIN_QUOTA_MILLI = 10;
const MIN_SHARES_MILLI = 2;

export function containerResources(
  container: Container,
  seen: ObservedContainer,
  actuated: ResourceRequirements | undefined,
  old: ContainerStatus | undefined,
): Pick<ContainerStatus, 'resources' | 'allocatedResources'> {
  const allocated = container.resources ?? {};
  const requests = allocated.requests;
  return {
    ...(requests === undefined || Object.keys(requests).length === 0
      ? {}
      : { allocatedResources: canonical(requests) }),
    resources: seen.state === 'running' ? applied(allocated, seen, actuated, old) : shown(allocated),
  };
}

function applied(
  allocated: ResourceRequirements,
  seen: ObservedContainer,
  actuated: ResourceRequirements | undefined,
  old: ContainerStatus | undefined,
): ResourceRequirements {
  const out = shown(allocated);
  const limits = out.limits === undefined ? undefined : { ...out.limits };
  const requests = out.requests === undefined ? undefined : { ...out.requests };
  const runtime = seen.resources;
  const put = (list: Record<string, string> | undefined, name: string, value: string | undefined): void => {
    if (list !== undefined && value !== undefined) list[name] = value;
  };
  const fallback = (section: 'limits' | 'requests', name: string): string | undefined =>
    actuated?.[section]?.[name] ?? old?.resources?.[section]?.[name];
  if (runtime === undefined) {
    for (const name of ['cpu', 'memory']) {
      put(limits, name, limits?.[name] === undefined ? undefined : fallback('limits', name));
      put(requests, name, requests?.[name] === undefined ? undefined : fallback('requests', name));
    }
  } else {
    put(limits, 'cpu', cpuLimit(runtime.cpuQuota, runtime.cpuPeriod, limits?.['cpu']));
    put(limits, 'memory', memoryLimit(runtime.memoryLimitBytes, limits?.['memory']));
    put(requests, 'cpu', cpuRequest(runtime.cpuShares, requests?.['cpu']));
    put(requests, 'memory', requests?.['memory'] === undefined ? undefined : fallback('requests', 'memory'));
  }
  return { ...out, ...(limits === undefined ? {} : { limits }), ...(requests === undefined ? {} : { requests }) };
}

function cpuLimit(
  quota: number | undefined,
  period: number | undefined,
  allocated: string | undefined,
): string | undefined {
  if (quota === undefined || quota <= 0 || period === undefined || period <= 0) return undefined;
  const milli = Math.trunc((quota * 1000) / period);
  if (milli <= MIN_QUOTA_MILLI && milliOf(allocated) <= MIN_QUOTA_MILLI) return undefined;
  return formatQuantity(fromMilli(milli));
}

function memoryLimit(bytes: number | undefined, allocated: string | undefined): string | undefined {
  if (bytes === undefined || bytes <= 0) return undefined;
  return formatQuantity(fromUnits(bytes, allocated === undefined ? 'BinarySI' : quantity(allocated).format));
}

function cpuRequest(shares: number | undefined, allocated: string | undefined): string | undefined {
  if (shares === undefined || shares <= 0) return undefined;
  const milli = Math.ceil((shares * 1000) / 1024);
  if (milli <= MIN_SHARES_MILLI && milliOf(allocated) <= MIN_SHARES_MILLI) return undefined;
  return formatQuantity(fromMilli(milli));
}

const canonical = (list: ResourceList): ResourceList =>
  Object.fromEntries(Object.entries(list).map(([name, text]) => [name, formatQuantity(quantity(text))]));

function shown(requirements: ResourceRequirements): ResourceRequirements {
  const section = (list: ResourceList | undefined): ResourceList | undefined =>
    list === undefined || Object.keys(list).length === 0 ? undefined : canonical(list);
  const limits = section(requirements.limits);
  const requests = section(requirements.requests);
  return {
    ...(limits === undefined ? {} : { limits }),
    ...(requests === undefined ? {} : { requests }),
    ...(requirements.claims === undefined ? {} : { claims: requirements.claims }),
  };
}
