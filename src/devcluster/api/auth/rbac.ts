// Roles and bindings, read from the store on every question: there are few of them and they may change at any time.
import { keyOf, recordAt, recordsAt, textAt, textsAt, type Json } from '../objects.ts';
import type { RequestInfo } from '../request-info.ts';
import type { ObjectStore } from '../store.ts';
import type { User } from '../strategy.ts';

const GROUP = 'rbac.authorization.k8s.io';
export type Rule = Json;

export function rolesAllow(store: ObjectStore, user: User, info: RequestInfo): { allowed: boolean; reason: string } {
  for (const { rule, because } of rulesOf(store, user, info.namespace))
    if (ruleAllows(rule, info)) return { allowed: true, reason: because };
  return { allowed: false, reason: '' };
}

/** Every rule that applies to the user cluster-wide or in this namespace. */
export function* rulesOf(
  store: ObjectStore,
  user: User,
  namespace: string,
): Generator<{ rule: Rule; because: string }> {
  for (const binding of store.list(`${GROUP}/clusterrolebindings`))
    if (binds(binding.object, user, '')) yield* rulesBehind(store, binding.object, '');
  if (namespace === '') return;
  for (const binding of store.list(`${GROUP}/rolebindings`, namespace))
    if (binds(binding.object, user, namespace)) yield* rulesBehind(store, binding.object, namespace);
}

function binds(binding: Json, user: User, namespace: string): boolean {
  return recordsAt(binding, 'subjects').some((subject) => {
    const name = textAt(subject, 'name');
    switch (textAt(subject, 'kind')) {
      case 'User':
        return name === user.name || name === '*';
      case 'Group':
        return user.groups.includes(name);
      case 'ServiceAccount':
        return user.name === `system:serviceaccount:${textAt(subject, 'namespace') || namespace}:${name}`;
      default:
        return false;
    }
  });
}

function* rulesBehind(
  store: ObjectStore,
  binding: Json,
  namespace: string,
): Generator<{ rule: Rule; because: string }> {
  const kind = textAt(binding, 'roleRef', 'kind');
  const name = textAt(binding, 'roleRef', 'name');
  const role =
    kind === 'ClusterRole'
      ? store.get(`${GROUP}/clusterroles`, name)
      : store.get(`${GROUP}/roles`, keyOf(namespace, name));
  const bindingKind = namespace === '' ? 'ClusterRoleBinding' : 'RoleBinding';
  const because = `RBAC: allowed by ${bindingKind} "${textAt(recordAt(binding, 'metadata'), 'name')}" of ${kind} "${name}"`;
  for (const rule of recordsAt(role?.object, 'rules')) yield { rule, because };
}

const has = (values: readonly string[], wanted: string): boolean => values.includes('*') || values.includes(wanted);

function ruleAllows(rule: Rule, info: RequestInfo): boolean {
  if (!has(textsAt(rule, 'verbs'), info.verb)) return false;
  if (!info.isResource) return textsAt(rule, 'nonResourceURLs').some((pattern) => pathMatches(pattern, info.path));
  if (!has(textsAt(rule, 'apiGroups'), info.group)) return false;
  const resource = info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`;
  const resources = textsAt(rule, 'resources');
  if (!has(resources, resource) && !(info.subresource !== '' && resources.includes(`*/${info.subresource}`)))
    return false;
  const names = textsAt(rule, 'resourceNames');
  return names.length === 0 || names.includes(info.name);
}

const pathMatches = (pattern: string, path: string): boolean =>
  pattern === '*' || pattern === path || (pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1)));
