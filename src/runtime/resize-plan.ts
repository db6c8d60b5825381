// In-place resize, decided: which containers changed, which must restart for it, and in which order the pod and its
// containers get their new values so that the pod never holds less than its containers.
import { isStaticPod, type Container, type Pod, type ResourceRequirements } from '../core/pod.ts';
import {
  declaresLimit,
  differingResources,
  podLimits,
  podRequests,
  RESIZABLE_RESOURCES,
  withPodLimits,
  withResources,
  type Actuated,
  type ResizableResource,
} from '../core/pod-resources.ts';
import { quantity, toMilli, toNumber } from '../core/quantity.ts';
import { newestOf, type PodSnapshot } from '../core/snapshot.ts';
import type { ContainerId } from '../core/ids.ts';
import { milliToQuota, milliToShares } from './linux-resources.ts';

export type PodValues = {
  readonly cpuShares: number;
  /** 0: no limit. */
  readonly cpuQuota: number;
  readonly memoryLimitBytes: number;
};

export type ResizeStep =
  | { readonly do: 'pod'; readonly values: PodValues; readonly previous: PodValues; readonly changed: keyof PodValues }
  | {
      readonly do: 'container';
      readonly name: string;
      readonly id: ContainerId;
      /** The resources to run with after this step. */
      readonly resources: ResourceRequirements;
      readonly previous: ResourceRequirements;
    }
  /** Nothing to do but to remember: for the pod itself, or for a container that gets its values when it starts. */
  | { readonly do: 'record'; readonly name?: string; readonly resources: ResourceRequirements };

/** The resources whose request or limit differs from what the container runs with; none without a record. */
export function changedResources(pod: Pod, container: Container, actuated: Actuated): readonly ResizableResource[] {
  const was = actuated.containers.get(container.name);
  if (was === undefined) return [];
  return differingResources(withPodLimits(container.resources, pod.spec.resources), withPodLimits(was, actuated.pod));
}

/** Of the resources set for the pod as a whole, those that differ from what is in force. */
const changedPodResources = (pod: Pod, actuated: Actuated): readonly ResizableResource[] =>
  isStaticPod(pod) ? [] : differingResources(pod.spec.resources, actuated.pod);

/** Whether anything of the pod differs from what is in force, as far as a container of that name counts. */
export const isResized = (pod: Pod, actuated: Actuated, counts: (name: string) => boolean): boolean =>
  changedPodResources(pod, actuated).length > 0 ||
  resizableContainers(pod).some((c) => counts(c.name) && changedResources(pod, c, actuated).length > 0);

export const restartsFor = (container: Container, changed: readonly ResizableResource[]): boolean =>
  changed.some((name) =>
    (container.resizePolicy ?? []).some((p) => p.resourceName === name && p.restartPolicy === 'RestartContainer'),
  );

/** All but the ephemeral ones; static pods are changed by replacing them. */
export const resizableContainers = (pod: Pod): readonly Container[] =>
  isStaticPod(pod) ? [] : [...(pod.spec.initContainers ?? []), ...pod.spec.containers];

export type CpuPeriod = { readonly cpuCfsQuota: boolean; readonly cpuCfsPeriodUs: number };

/** The pod's own cgroup values: limits count only when the pod or every container declares them. */
function podCgroupValues(pod: Pod, facts: CpuPeriod): PodValues {
  const requests = podRequests(pod);
  const limits = podLimits(pod);
  const request = requests.get('cpu');
  const cpu = limits.get('cpu');
  const memory = limits.get('memory');
  return {
    cpuShares: milliToShares(request === undefined ? 0 : toMilli(request)),
    cpuQuota:
      facts.cpuCfsQuota && cpu !== undefined && declaresLimit(pod, 'cpu')
        ? milliToQuota(toMilli(cpu), facts.cpuCfsPeriodUs)
        : 0,
    memoryLimitBytes: memory !== undefined && declaresLimit(pod, 'memory') ? toNumber(memory) : 0,
  };
}

const LIMIT: Record<ResizableResource, keyof PodValues> = { memory: 'memoryLimitBytes', cpu: 'cpuQuota' };

/** No limit is the largest limit. */
const size = (value: number): number => (value === 0 ? Infinity : value);

export function planResize(
  pod: Pod,
  snapshot: PodSnapshot,
  actuated: Actuated,
  facts: CpuPeriod,
  restarting: ReadonlySet<string>,
): readonly ResizeStep[] {
  const changed = resizableContainers(pod).filter((c) => changedResources(pod, c, actuated).length > 0);
  const podLevel = changedPodResources(pod, actuated);
  if (changed.length + podLevel.length === 0) return [];
  const target = podCgroupValues(pod, facts);
  const inForce = withResources(pod, (c) => actuated.containers.get(c.name) ?? c.resources, actuated.pod);
  let current = podCgroupValues(inForce, facts);
  const steps: ResizeStep[] = [];
  const set = (key: keyof PodValues): void => {
    const values = { ...current, [key]: target[key] };
    steps.push({ do: 'pod', values, previous: current, changed: key });
    current = values;
  };
  const isLive = ({ name }: Container): boolean =>
    !restarting.has(name) && newestOf(snapshot, name)?.state === 'running';
  const live = changed.filter(isLive);
  const running = new Map(live.map(({ name }) => [name, withPodLimits(actuated.containers.get(name), actuated.pod)]));
  let podRecord = actuated.pod ?? {};
  for (const resource of RESIZABLE_RESOURCES) {
    const limit = LIMIT[resource];
    if (size(target[limit]) > size(current[limit])) set(limit);
    if (resource === 'cpu' && target.cpuShares > current.cpuShares) set('cpuShares');
    steps.push(...containerSteps(pod, live, snapshot, running, resource));
    if (resource === 'cpu' && target.cpuShares < current.cpuShares) set('cpuShares');
    if (size(target[limit]) < size(current[limit])) set(limit);
    if (!podLevel.includes(resource)) continue;
    podRecord = withResource(podRecord, pod.spec.resources ?? {}, resource);
    steps.push({ do: 'record', resources: podRecord });
  }
  for (const container of changed)
    if (!isLive(container))
      steps.push({
        do: 'record',
        name: container.name,
        resources: withPodLimits(container.resources, pod.spec.resources),
      });
  return steps;
}

/** Containers that give come before containers that take. */
function containerSteps(
  pod: Pod,
  live: readonly Container[],
  snapshot: PodSnapshot,
  running: Map<string, ResourceRequirements>,
  resource: ResizableResource,
): ResizeStep[] {
  const weighed: { step: ResizeStep; grows: boolean }[] = [];
  for (const container of live) {
    const seen = newestOf(snapshot, container.name);
    const previous = running.get(container.name) ?? {};
    const wanted = withPodLimits(container.resources, pod.spec.resources);
    if (seen === undefined || !differingResources(wanted, previous).includes(resource)) continue;
    const resources = withResource(previous, wanted, resource);
    running.set(container.name, resources);
    weighed.push({
      step: { do: 'container', name: container.name, id: seen.id, resources, previous },
      grows: weightOf(resources, resource) > weightOf(previous, resource),
    });
  }
  return weighed.sort((a, b) => Number(a.grows) - Number(b.grows)).map(({ step }) => step);
}

const weightOf = (resources: ResourceRequirements, name: ResizableResource): number =>
  Number(quantity(resources.limits?.[name]).nano) || Number(quantity(resources.requests?.[name]).nano);

function withResource(
  old: ResourceRequirements,
  wanted: ResourceRequirements,
  name: ResizableResource,
): ResourceRequirements {
  const merged = (a: ResourceRequirements['limits'], b: ResourceRequirements['limits']): Record<string, string> => {
    const { [name]: _, ...rest } = a ?? {};
    return b?.[name] === undefined ? rest : { ...rest, [name]: b[name] };
  };
  return { ...wanted, limits: merged(old.limits, wanted.limits), requests: merged(old.requests, wanted.requests) };
}
