// metadata of any namespaced object.
import type { ObjectMeta } from '../meta.ts';
import { dns1123Label, dns1123Subdomain, qualifiedName, type NameCheck } from '../names.ts';
import { item, key, type Findings } from './field-error.ts';
import { checkAnnotations, checkLabels } from './labels.ts';

export function checkObjectMeta(f: Findings, meta: ObjectMeta, nameCheck: NameCheck = dns1123Subdomain): void {
  const field = 'metadata';
  if (meta.generateName)
    f.reasons(`${field}.generateName`, meta.generateName, nameCheck(meta.generateName.replace(/-$/, 'a')));
  if (!meta.name) f.required(`${field}.name`, 'name or generateName is required');
  else f.reasons(`${field}.name`, meta.name, nameCheck(meta.name));
  f.name(`${field}.namespace`, meta.namespace, dns1123Label);
  if ((meta.generation ?? 0) < 0)
    f.invalid(`${field}.generation`, meta.generation, 'must be greater than or equal to 0');
  checkLabels(f, `${field}.labels`, meta.labels);
  checkAnnotations(f, `${field}.annotations`, meta.annotations);
  checkOwners(f, `${field}.ownerReferences`, meta.ownerReferences ?? []);
  (meta.finalizers ?? []).forEach((name, i) => f.reasons(item(`${field}.finalizers`, i), name, qualifiedName(name)));
}

function checkOwners(f: Findings, field: string, owners: NonNullable<ObjectMeta['ownerReferences']>): void {
  let controllers = 0;
  owners.forEach((owner, i) => {
    const at = item(field, i);
    for (const part of ['apiVersion', 'kind', 'name', 'uid'] as const)
      if (!owner[part]) f.required(`${at}.${part}`, 'must not be empty');
    if (owner.controller === true && ++controllers === 2)
      f.invalid(field, owner.name, 'only one reference can have controller set to true');
  });
}

/** Fields of metadata that never change once an object exists. */
export function checkObjectMetaUpdate(f: Findings, now: ObjectMeta, before: ObjectMeta): void {
  for (const part of ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp'] as const)
    if (now[part] !== undefined && now[part] !== before[part])
      f.invalid(`metadata.${part}`, now[part], 'field is immutable');
  if (
    now.deletionGracePeriodSeconds !== undefined &&
    now.deletionGracePeriodSeconds !== before.deletionGracePeriodSeconds
  )
    f.invalid('metadata.deletionGracePeriodSeconds', now.deletionGracePeriodSeconds, 'field is immutable');
}

/** Annotations of a pod that have a meaning of their own. */
export function checkPodAnnotations(
  f: Findings,
  annotations: Readonly<Record<string, string>>,
  containers: ReadonlySet<string>,
  nodeName: string | undefined,
): void {
  const field = 'metadata.annotations';
  const MIRROR = 'kubernetes.io/config.mirror';
  const COST = 'controller.kubernetes.io/pod-deletion-cost';
  const APPARMOR = 'container.apparmor.security.beta.kubernetes.io/';
  if (annotations[MIRROR] !== undefined && !nodeName)
    f.invalid(key(field, MIRROR), annotations[MIRROR], 'must set spec.nodeName if mirror pod annotation is set');
  const cost = annotations[COST];
  if (cost !== undefined && !isInt32(cost)) f.invalid(key(field, COST), cost, 'must be a 32bit integer');
  for (const [name, value] of Object.entries(annotations)) {
    if (name.startsWith(APPARMOR)) {
      const container = name.slice(APPARMOR.length);
      if (!containers.has(container)) f.invalid(key(field, name), container, 'container not found');
      if (!/^(?:|runtime\/default|unconfined|localhost\/.*)$/s.test(value))
        f.invalid(key(field, name), value, `invalid AppArmor profile name: "${value}"`);
    }
  }
}

const isInt32 = (text: string): boolean =>
  /^[+-]?\d{1,10}$/.test(text) && !/^0\d/.test(text) && Number(text) >= -(2 ** 31) && Number(text) < 2 ** 31;
