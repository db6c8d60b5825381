// The `resize` subresource: CPU and memory of containers and of the pod as a whole may change in place, nothing else may.
import { computeQosClass, qosClassOf } from '../qos.ts';
import {
  CONFIG_MIRROR,
  type Container,
  type Pod,
  type PodSpec,
  type ResourceList,
  type ResourceRequirements,
} from '../pod.ts';
import { Findings, type FieldError } from './field-error.ts';
import { checkObjectMetaUpdate } from './object-meta.ts';
import { readPod } from './pod-shape.ts';
import { checkPod, type PodValidationOptions } from './pod.ts';
import { sameJson } from './update.ts';

const RESIZABLE = ['cpu', 'memory'];
const ONLY_CPU_AND_MEMORY = 'only cpu and memory resources are mutable';

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
  if (computeQosClass(read.object) !== qosClassOf(before))
    f.invalid('spec', now.status?.qosClass ?? '', 'Pod QOS Class may not change as a result of resizing');
  const running = before.status?.containerStatuses?.find((s) => s.state.running !== undefined);
  if (running !== undefined && running.resources === undefined)
    f.forbidden('spec', 'Pod running on node without support for resize');
  checkPodLevel(f, spec, before.spec);
  const claimed = before.status?.nodeAllocatableResourceClaimStatuses;
  if (Array.isArray(claimed) && claimed.length > 0)
    f.forbidden('spec', 'pods with node allocatable resource claims cannot be resized');
  if (!sameOrder(f, spec, before.spec)) return f.list;
  checkContainers(f, spec, before.spec);
  const { containers, initContainers, resources } = before.spec;
  if (f.list.length === 0 && !sameJson({ ...spec, containers, initContainers, resources }, before.spec))
    f.forbidden('spec', ONLY_CPU_AND_MEMORY);
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
  const claims = (spec: PodSpec): unknown => spec.resources?.claims;
  if (
    !sameJson(oldAmounts(now.resources, before.resources), oldAmounts(before.resources, before.resources)) ||
    !sameJson(claims(now), claims(before))
  )
    f.forbidden('spec', 'only cpu and memory resources are mutable at pod-level');
}

function checkContainers(f: Findings, now: PodSpec, before: PodSpec): void {
  const pairs = (list: 'containers' | 'initContainers'): readonly (readonly [Container, Container, string])[] =>
    (now[list] ?? []).flatMap((mine, i) => {
      const old = before[list]?.[i];
      return old === undefined ? [] : [[mine, old, `spec.${list}[${i}]`] as const];
    });
  const [inits, mains] = [pairs('initContainers'), pairs('containers')];
  for (const [mine, old, field] of [...inits, ...mains]) checkNothingRemoved(f, `${field}.resources`, mine, old);
  for (const [mine, old] of mains) if (!sameButForAmounts(mine, old)) f.forbidden('spec', ONLY_CPU_AND_MEMORY);
  for (const [mine, old, field] of inits) {
    if (!sameButForAmounts(mine, old))
      f.forbidden(field, 'only cpu and memory resources for init or sidecar containers are mutable');
    if (mine.restartPolicy === 'Always' || sameJson(mine, old)) continue;
    for (const policy of mine.resizePolicy ?? [])
      if (policy.restartPolicy === 'RestartContainer')
        f.forbidden(field, 'non-sidecar init containers with a resize policy of RestartContainer cannot be resized');
  }
}

function checkNothingRemoved(
  f: Findings,
  field: string,
  now: Pick<Container, 'resources'>,
  before: Pick<Container, 'resources'>,
  what = 'resource',
): void {
  for (const side of ['requests', 'limits'] as const) {
    const mine = now.resources?.[side] ?? {};
    if (Object.keys(before.resources?.[side] ?? {}).some((name) => mine[name] === undefined))
      f.forbidden(`${field}.${side}`, `${what} ${side} cannot be removed`);
  }
}

/**
 * Whether nothing but CPU and memory differs. What the new one claims is left out of account, so that a container with
 * claims never equals its old self: its resources cannot be changed at all.
 */
function sameButForAmounts(now: Container, before: Container): boolean {
  const { claims } = before.resources ?? {};
  const amounts = oldAmounts(before.resources, before.resources);
  return sameJson(
    { ...now, resources: oldAmounts(now.resources, before.resources) },
    { ...before, resources: { ...amounts, claims } },
  );
}

type Amounts = Pick<ResourceRequirements, 'limits' | 'requests'>;

function oldAmounts(now: Amounts | undefined, before: Amounts | undefined): Amounts {
  const side = (mine: ResourceList | undefined, old: ResourceList | undefined): ResourceList => {
    const done: Record<string, string> = { ...mine };
    for (const name of RESIZABLE) {
      const value = old?.[name];
      if (value === undefined) delete done[name];
      else done[name] = value;
    }
    return done;
  };
  const limits = side(now?.limits, before?.limits);
  const requests = side(now?.requests, before?.requests);
  return {
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(Object.keys(requests).length === 0 ? {} : { requests }),
  };
}
