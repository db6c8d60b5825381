// May they? Administrators may everything, nodes what the node authorizer grants, everybody what roles grant.
import { forbidden, ApiError } from '../api-error.ts';
import type { RequestInfo } from '../request-info.ts';
import type { ObjectStore } from '../store.ts';
import type { User } from '../strategy.ts';
import { isNode, nodeMay } from './node-authorizer.ts';
import { rolesAllow } from './rbac.ts';

export type AuthorizerDecision = { readonly allowed: boolean; readonly reason: string };

export function authorize(store: ObjectStore, user: User, info: RequestInfo): AuthorizerDecision {
  if (user.groups.includes('system:masters')) return { allowed: true, reason: '' };
  if (isNode(user)) {
    const verdict = nodeMay(store, user, info);
    if (verdict.allowed) return verdict;
    const byRole = rolesAllow(store, user, info);
    return byRole.allowed ? byRole : verdict;
  }
  return rolesAllow(store, user, info);
}

export function refusal(user: User, info: RequestInfo, reason: string): ApiError {
  const why = reason === '' ? '' : `: ${reason}`;
  if (!info.isResource)
    return new ApiError(
      403,
      'Forbidden',
      `forbidden: User "${user.name}" cannot ${info.verb} path "${info.path}"${why}`,
      {},
    );
  const resource = info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`;
  const scope = info.namespace === '' ? 'at the cluster scope' : `in the namespace "${info.namespace}"`;
  const text = `User "${user.name}" cannot ${info.verb} resource "${resource}" in API group "${info.group}" ${scope}${why}`;
  return forbidden({ group: info.group, resource: info.resource, kind: '' }, info.name, text);
}
