// What may change in a pod that exists: images, deadline, more tolerations, fewer gates. All else is refused.
import { isDeepStrictEqual } from 'node:util';
import { CONFIG_MIRROR, type Container, type Pod, type PodSpec, type Toleration } from '../pod.ts';
import { Findings, item, type FieldError } from './field-error.ts';
import { checkObjectMetaUpdate } from './object-meta.ts';
import { readPod } from './pod-shape.ts';
import { checkPod, type PodValidationOptions } from './pod.ts';

const MAX_DEADLINE = 2 ** 31 - 1;
const UPDATABLE =
  '`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` ' +
  '(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was ' +
  'previously negative)';

/** `now` has been defaulted. Status is not looked at. */
export function validatePodUpdate(now: Pod, before: Pod, options: PodValidationOptions = {}): readonly FieldError[] {
  const read = readPod(now);
  if (read.object === undefined) return read.errors;
  const f = new Findings();
  const pod = read.object;
  checkObjectMetaUpdate(f, pod.metadata, before.metadata);
  checkPod(f, pod, options);
  checkAnnotationUpdate(f, pod, before);
  const sameCount = checkImages(f, 'containers', pod.spec, before.spec);
  if (!sameCount || !checkImages(f, 'initContainers', pod.spec, before.spec)) return f.list;
  checkDeadline(f, pod.spec.activeDeadlineSeconds, before.spec.activeDeadlineSeconds);
  checkAddedTolerations(f, pod.spec.tolerations ?? [], before.spec.tolerations ?? []);
  checkRemovedGates(f, pod.spec, before.spec);
  if (!sameJson(withoutUpdatable(pod.spec, before.spec), before.spec))
    f.forbidden('spec', `pod updates may not change fields other than ${UPDATABLE}`);
  return f.list;
}

/** For the `ephemeralcontainers` subresource: they can be added, never changed or removed. */
export function validateEphemeralContainersUpdate(
  now: Pod,
  before: Pod,
  options: PodValidationOptions = {},
): readonly FieldError[] {
  const f = new Findings();
  if (before.metadata.annotations?.[CONFIG_MIRROR] !== undefined) {
    f.forbidden('', 'static pods do not support ephemeral containers');
    return f.list;
  }
  const read = readPod(now);
  if (read.object === undefined) return read.errors;
  checkObjectMetaUpdate(f, read.object.metadata, before.metadata);
  checkPod(f, read.object, options);
  const field = 'spec.ephemeralContainers';
  const byName = new Map((read.object.spec.ephemeralContainers ?? []).map((c) => [c.name, c]));
  for (const old of before.spec.ephemeralContainers ?? []) {
    const same = byName.get(old.name);
    if (same === undefined) f.forbidden(field, `existing ephemeral containers "${old.name}" may not be removed`);
    else if (!sameJson(same, old)) f.forbidden(field, `existing ephemeral containers "${old.name}" may not be changed`);
  }
  const others = { ...read.object.spec, ephemeralContainers: before.spec.ephemeralContainers };
  if (!sameJson(others, before.spec)) f.forbidden('spec', 'only ephemeral containers may be changed here');
  return f.list;
}

/** Equal as JSON: an absent field and an undefined one are the same, and so is an empty list and none. */
export const sameJson = (a: unknown, b: unknown): boolean => a === b || isDeepStrictEqual(pruned(a), pruned(b));

function pruned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(pruned);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, v]) => v !== undefined && v !== null && !(Array.isArray(v) && v.length === 0))
      .map(([k, v]) => [k, pruned(v)]),
  );
}

function checkAnnotationUpdate(f: Findings, now: Pod, before: Pod): void {
  const [mark, old] = [now.metadata.annotations?.[CONFIG_MIRROR], before.metadata.annotations?.[CONFIG_MIRROR]];
  const field = `metadata.annotations[${CONFIG_MIRROR}]`;
  if (old === undefined && mark !== undefined) f.forbidden(field, 'may not add mirror pod annotation');
  if (old !== undefined && mark === undefined) f.forbidden(field, 'may not remove or update mirror pod annotation');
  if (old !== undefined && mark !== undefined && mark !== old)
    f.forbidden(field, 'may not remove or update mirror pod annotation');
}

/** Returns whether the containers are still the same number, without which nothing else can be compared. */
function checkImages(f: Findings, list: 'containers' | 'initContainers', now: PodSpec, before: PodSpec): boolean {
  if ((now[list]?.length ?? 0) !== (before[list]?.length ?? 0)) {
    f.forbidden(`spec.${list}`, 'pod updates may not add or remove containers');
    return false;
  }
  return true;
}

function checkDeadline(f: Findings, now: number | undefined, before: number | undefined): void {
  const field = 'spec.activeDeadlineSeconds';
  if (now === undefined) {
    if (before !== undefined) f.invalid(field, null, 'must not update from a positive integer to nil value');
    return;
  }
  if (now < 0 || now > MAX_DEADLINE) f.invalid(field, now, `must be between 0 and ${MAX_DEADLINE}, inclusive`);
  if (before !== undefined && now > before) f.invalid(field, now, 'must be less than or equal to previous value');
}

function checkAddedTolerations(f: Findings, now: readonly Toleration[], before: readonly Toleration[]): void {
  const { length } = before.filter((old) => {
    const { tolerationSeconds: _, ...rest } = old;
    return !now.some(({ tolerationSeconds: __, ...mine }) => sameJson(mine, rest));
  });
  if (length > 0)
    f.forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds');
}

function checkRemovedGates(f: Findings, now: PodSpec, before: PodSpec): void {
  const old = new Set((before.schedulingGates ?? []).map((g) => g.name));
  (now.schedulingGates ?? []).forEach((gate, i) => {
    if (!old.has(gate.name))
      f.forbidden(
        `${item('spec.schedulingGates', i)}.name`,
        `only deletion is allowed, but found new scheduling gate '${gate.name}'`,
      );
  });
}

/** The new spec with everything that may change put back to what it was. */
function withoutUpdatable(now: PodSpec, before: PodSpec): PodSpec {
  const images = (list: readonly Container[] | undefined, old: readonly Container[] | undefined) =>
    list?.map((c, i) => ({ ...c, image: old?.[i]?.image }));
  const negativeGrace = (before.terminationGracePeriodSeconds ?? 0) < 0 && now.terminationGracePeriodSeconds === 1;
  const gated = (before.schedulingGates ?? []).length > 0;
  return {
    ...now,
    containers: images(now.containers, before.containers) as readonly Container[],
    initContainers: images(now.initContainers, before.initContainers),
    activeDeadlineSeconds: before.activeDeadlineSeconds,
    tolerations: before.tolerations,
    schedulingGates: before.schedulingGates,
    ...(negativeGrace ? { terminationGracePeriodSeconds: before.terminationGracePeriodSeconds } : {}),
    // A pod nobody has placed yet may still be told where to go.
    ...(gated ? { nodeSelector: before.nodeSelector, affinity: before.affinity } : {}),
  } as PodSpec;
}
