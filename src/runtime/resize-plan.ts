// In-place resize, decided: which containers changed, which must restart for it, and in which order the pod and its
// containers get their new values so that the pod never holds less than its containers.
import { isSidecar, isStaticPod, type Container, type Pod, type ResourceRequirements } from '../core/pod.ts';
import { podLimits, podRequests, resourcesOf } from '../core/pod-resources.ts';
import { compareQuantities, quantity, toMilli, toNumber } from '../core/quantity.ts';
import { newestOf, type PodSnapshot } from '../core/snapshot.ts';
import type { ContainerId } from '../core/ids.ts';
import { milliToQuota, milliToShares } from './linux-resources.ts';

export type Resizable = 'memory' | 'cpu';
const RESIZABLE: readonly Resizable[] = ['memory', 'cpu'];

/** What containers run with, by name: the record kept over restarts. */
export type Actuated = ReadonlyMap<string, ResourceRequirements>;

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
    };

const same = (a: string | undefined, b: string | undefined): boolean =>
  compareQuantities(quantity(a), quantity(b)) === 0;

/** The resources whose request or limit differs from what the container runs with. */
export function changedResources(
  container: Container,
  actuated: ResourceRequirements | undefined,
): readonly Resizable[] {
  if (actuated === undefined) return [];
  return RESIZABLE.filter(
    (name) =>
      !same(container.resources?.limits?.[name], actuated.limits?.[name]) ||
      !same(container.resources?.requests?.[name], actuated.requests?.[name]),
  );
}

export const restartsFor = (container: Container, changed: readonly Resizable[]): boolean =>
  changed.some((name) =>
    (container.resizePolicy ?? []).some((p) => p.resourceName === name && p.restartPolicy === 'RestartContainer'),
  );

/** Main containers and sidecars; static pods are changed by replacing them. */
export const resizableContainers = (pod: Pod): readonly Container[] =>
  isStaticPod(pod) ? [] : [...(pod.spec.initContainers ?? []).filter(isSidecar), ...pod.spec.containers];

export type CpuPeriod = { readonly cpuCfsQuota: boolean; readonly cpuCfsPeriodUs: number };

/** The pod's own cgroup values: limits count only when every container declares them. */
function podCgroupValues(pod: Pod, facts: CpuPeriod): PodValues {
  const requests = podRequests(pod);
  const limits = podLimits(pod);
  const declared = (name: Resizable): boolean =>
    pod.spec.resources?.limits?.[name] !== undefined ||
    [...(pod.spec.initContainers ?? []), ...pod.spec.containers].every(
      (c) => (resourcesOf(c.resources?.limits).get(name)?.nano ?? 0n) > 0n,
    );
  const request = requests.get('cpu');
  const cpu = limits.get('cpu');
  const memory = limits.get('memory');
  return {
    cpuShares: milliToShares(request === undefined ? 0 : toMilli(request)),
    cpuQuota:
      facts.cpuCfsQuota && cpu !== undefined && declared('cpu') ? milliToQuota(toMilli(cpu), facts.cpuCfsPeriodUs) : 0,
    memoryLimitBytes: memory !== undefined && declared('memory') ? toNumber(memory) : 0,
  };
}

/** The pod as it runs: its containers with the resources they actually have. */
const actuatedPod = (pod: Pod, actuated: Actuated): Pod => {
  const as = (container: Container): Container => {
    const own = actuated.get(container.name);
    return own === undefined ? container : { ...container, resources: own };
  };
  const { initContainers } = pod.spec;
  return {
    ...pod,
    spec: {
      ...pod.spec,
      containers: pod.spec.containers.map(as),
      ...(initContainers === undefined ? {} : { initContainers: initContainers.map(as) }),
    },
  };
};

const LIMIT: Record<Resizable, keyof PodValues> = { memory: 'memoryLimitBytes', cpu: 'cpuQuota' };

/** No limit is the largest limit. */
const size = (value: number): number => (value === 0 ? Infinity : value);

export function planResize(
  pod: Pod,
  snapshot: PodSnapshot,
  actuated: Actuated,
  facts: CpuPeriod,
  restarting: ReadonlySet<string>,
): readonly ResizeStep[] {
  const changed = resizableContainers(pod).filter((c) => changedResources(c, actuated.get(c.name)).length > 0);
  if (changed.length === 0) return [];
  const target = podCgroupValues(pod, facts);
  let current = podCgroupValues(actuatedPod(pod, actuated), facts);
  const steps: ResizeStep[] = [];
  const set = (key: keyof PodValues): void => {
    const values = { ...current, [key]: target[key] };
    steps.push({ do: 'pod', values, previous: current, changed: key });
    current = values;
  };
  const running = new Map(actuated);
  for (const resource of RESIZABLE) {
    const limit = LIMIT[resource];
    if (size(target[limit]) > size(current[limit])) set(limit);
    if (resource === 'cpu' && target.cpuShares > current.cpuShares) set('cpuShares');
    steps.push(...containerSteps(changed, snapshot, running, resource, restarting));
    if (resource === 'cpu' && target.cpuShares < current.cpuShares) set('cpuShares');
    if (size(target[limit]) < size(current[limit])) set(limit);
  }
  return steps;
}

/** Containers that give come before containers that take. */
function containerSteps(
  changed: readonly Container[],
  snapshot: PodSnapshot,
  running: Map<string, ResourceRequirements>,
  resource: Resizable,
  restarting: ReadonlySet<string>,
): ResizeStep[] {
  const weighed: { step: ResizeStep; grows: boolean }[] = [];
  for (const container of changed) {
    const seen = newestOf(snapshot, container.name);
    const old = running.get(container.name);
    if (restarting.has(container.name) || seen?.state !== 'running' || old === undefined) continue;
    if (!changedResources(container, old).includes(resource)) continue;
    const resources = withResource(old, container.resources ?? {}, resource);
    running.set(container.name, resources);
    weighed.push({
      step: { do: 'container', name: container.name, id: seen.id, resources },
      grows: weightOf(resources, resource) > weightOf(old, resource),
    });
  }
  return weighed.sort((a, b) => Number(a.grows) - Number(b.grows)).map(({ step }) => step);
}

const weightOf = (resources: ResourceRequirements, name: Resizable): number =>
  Number(quantity(resources.limits?.[name]).nano) || Number(quantity(resources.requests?.[name]).nano);

function withResource(old: ResourceRequirements, wanted: ResourceRequirements, name: Resizable): ResourceRequirements {
  const merged = (a: ResourceRequirements['limits'], b: ResourceRequirements['limits']): Record<string, string> => {
    const { [name]: _, ...rest } = a ?? {};
    return b?.[name] === undefined ? rest : { ...rest, [name]: b[name] };
  };
  return { ...wanted, limits: merged(old.limits, wanted.limits), requests: merged(old.requests, wanted.requests) };
}
