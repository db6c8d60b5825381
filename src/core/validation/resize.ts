// The `resize` subresource: CPU and memory of containers and of the pod as a whole may change in place, nothing else may.
import { computeQosClass, qosClassOf } from '../qos.ts';
import { CONFIG_MIRROR, type Container, type Pod, type PodSpec, type ResourceList } from '../pod.ts';
import { Findings, type FieldError } from './field-error.ts';
import { checkObjectMetaUpdate } from './object-meta.ts';
import { readPod } from './pod-shape.ts';
import { checkPod, type PodValidationOptions } from './pod.ts';
import { sameJson } from './update.ts';

const RESIZABLE = ['cpu', 'memory'];

/** `now` has been defaulted. */
export function validateResize(now: Pod, before: Pod, options: PodValidationOptions = {}): readonly FieldError[] {
  const f = new Findings();
  if (before.metadata.annotations?.[CONFIG_MIRROR] !== undefined) {
    f.forbidden('', 'static pods cannot be resized');
    return f.list;
  }
  if (before.spec.os?.name === 'windows') {
    f.forbidden('', 'windows pods cannot be resized');
    return f.list;
  }
  const read = readPod(now);
  if (read.object === undefined) return read.errors;
  const { spec } = read.object;
  checkObjectMetaUpdate(f, read.object.metadata, before.metadata);
  checkPod(f, read.object, options);
  const qos = computeQosClass(read.object);
  if (qos !== qosClassOf(before)) f.invalid('spec', qos, 'Pod QOS Class may not change as a result of resizing');
  const running = before.status?.containerStatuses?.find((s) => s.state.running !== undefined);
  if (running !== undefined && running.resources === undefined)
    f.forbidden('spec', 'Pod running on node without support for resize');
  checkPodLevel(f, spec, before.spec);
  if (!sameOrder(f, spec, before.spec)) return f.list;
  checkContainers(f, spec, before.spec);
  if (f.list.length === 0 && !sameJson(withOldResources(spec, before.spec), before.spec))
    f.forbidden('spec', 'only cpu and memory resources are mutable');
  return f.list;
}

function sameOrder(f: Findings, now: PodSpec, before: PodSpec): boolean {
  let same = true;
  for (const list of ['containers', 'initContainers'] as const) {
    const [mine, old] = [now[list] ?? [], before[list] ?? []];
    if (mine.length !== old.length) {
      f.forbidden(`spec.${list}`, `${list} may not be added or removed on resize`);
      same = false;
      continue;
    }
    mine.forEach((container, i) => {
      if (container.name === old[i]?.name) return;
      f.forbidden(`spec.${list}[${i}].name`, `${list} may not be renamed or reordered on resize`);
      same = false;
    });
  }
  return same;
}

function checkPodLevel(f: Findings, now: PodSpec, before: PodSpec): void {
  const field = 'spec.resources';
  if (before.resources !== undefined && now.resources === undefined)
    return f.forbidden(field, 'pod-level resources cannot be removed');
  checkNothingRemoved(f, field, now, before, 'pod-level resource');
  const rest = withOld(now, before).resources ?? {};
  if (!sameJson(rest, withOld(before, before).resources ?? {}))
    f.forbidden('spec', 'only cpu and memory resources are mutable at pod-level');
}

function checkContainers(f: Findings, now: PodSpec, before: PodSpec): void {
  now.containers.forEach((container, i) => {
    const old = before.containers[i];
    if (old !== undefined) checkNothingRemoved(f, `spec.containers[${i}].resources`, container, old);
  });
  (now.initContainers ?? []).forEach((container, i) => {
    const old = before.initContainers?.[i];
    if (old === undefined) return;
    checkNothingRemoved(f, `spec.initContainers[${i}].resources`, container, old);
    const field = `spec.initContainers[${i}]`;
    if (!sameJson(withOld(container, old), withOld(old, old)))
      f.forbidden(field, 'only cpu and memory resources for init or sidecar containers are mutable');
  });
}

function checkNothingRemoved(
  f: Findings,
  field: string,
  now: WithResources,
  before: WithResources,
  what = 'resource',
): void {
  for (const side of ['requests', 'limits'] as const) {
    const mine = now.resources?.[side] ?? {};
    if (Object.keys(before.resources?.[side] ?? {}).some((name) => mine[name] === undefined))
      f.forbidden(`${field}.${side}`, `${what} ${side} cannot be removed`);
  }
}

/** The new spec with CPU and memory put back to what they were. */
function withOldResources(now: PodSpec, before: PodSpec): PodSpec {
  const restore = (list: readonly Container[], old: readonly Container[] | undefined): readonly Container[] =>
    list.map((c, i) => withOld(c, old?.[i]));
  const { resources: _, ...rest } = now;
  return {
    ...rest,
    containers: restore(now.containers, before.containers),
    ...(now.initContainers === undefined ? {} : { initContainers: restore(now.initContainers, before.initContainers) }),
    ...(before.resources !== undefined && { resources: before.resources }),
  };
}

type WithResources = Pick<Container, 'resources'>;

function withOld<C extends WithResources>(now: C, before: WithResources | undefined): C {
  const side = (mine: ResourceList | undefined, old: ResourceList | undefined): ResourceList => {
    const done: Record<string, string> = { ...mine };
    for (const name of RESIZABLE) {
      const value = old?.[name];
      if (value === undefined) delete done[name];
      else done[name] = value;
    }
    return done;
  };
  const limits = side(now.resources?.limits, before?.resources?.limits);
  const requests = side(now.resources?.requests, before?.resources?.requests);
  return {
    ...now,
    resources: {
      ...now.resources,
      limits: Object.keys(limits).length === 0 ? undefined : limits,
      requests: Object.keys(requests).length === 0 ? undefined : requests,
    },
  };
}
