// Questions about rights and identities: token reviews, access reviews, "who am I". Nothing is stored.
import type { Authenticator } from './auth/authenticate.ts';
import { authorize } from './auth/authorize.ts';
import { rulesOf } from './auth/rbac.ts';
import { DEFAULT_AUDIENCES } from './auth/tokens.ts';
import { badRequest } from './api-error.ts';
import { isJson, recordAt, recordsAt, textAt, textsAt, type Json } from './objects.ts';
import { NO_REQUEST, type RequestInfo } from './request-info.ts';
import { apiVersionOf, type ResourceType } from './resources.ts';
import { fieldTerms } from './selectors.ts';
import type { ObjectStore } from './store.ts';
import type { User } from './strategy.ts';

export type ReviewDeps = { readonly store: ObjectStore; readonly authenticator: Authenticator };

/** Whether this resource is a question rather than a thing. */
export const isReview = (type: ResourceType): boolean =>
  type.group === 'authentication.k8s.io' || type.group === 'authorization.k8s.io';

export function answerReview(deps: ReviewDeps, type: ResourceType, user: User, namespace: string, body: Json): Json {
  const head = {
    kind: type.kind,
    apiVersion: apiVersionOf(type),
    metadata: { ...recordAt(body, 'metadata'), creationTimestamp: null },
    ...(body['spec'] === undefined ? {} : { spec: body['spec'] }),
  };
  switch (type.kind) {
    case 'TokenReview':
      return { ...head, status: tokenStatus(deps, body) };
    case 'SelfSubjectReview':
      return { ...head, status: { userInfo: userInfo(user) } };
    case 'SelfSubjectAccessReview':
      return { ...head, status: accessStatus(deps.store, user, recordAt(body, 'spec')) };
    case 'SelfSubjectRulesReview':
      return { ...head, status: rulesStatus(deps.store, user, textAt(body, 'spec', 'namespace')) };
    case 'SubjectAccessReview':
    case 'LocalSubjectAccessReview': {
      const spec = recordAt(body, 'spec');
      if (type.namespaced && textAt(spec, 'resourceAttributes', 'namespace') !== namespace)
        throw badRequest(`spec.resourceAttributes.namespace must match namespace: ${namespace}`);
      return { ...head, status: accessStatus(deps.store, subjectOf(spec), spec) };
    }
    default:
      throw badRequest(`no such review: ${type.kind}`);
  }
}

const userInfo = (user: User): Json => ({
  username: user.name,
  ...(user.uid === undefined ? {} : { uid: user.uid }),
  groups: user.groups,
  ...(user.extra === undefined ? {} : { extra: user.extra }),
});

function tokenStatus(deps: ReviewDeps, body: Json): Json {
  const token = textAt(body, 'spec', 'token');
  if (token === '') throw badRequest('token is required for TokenReview in authentication');
  const asked = textsAt(body, 'spec', 'audiences');
  const identity = deps.authenticator.identify(token);
  if (identity === undefined) return { authenticated: false, user: {}, error: 'invalid bearer token' };
  const wanted = asked.length > 0 ? asked : DEFAULT_AUDIENCES;
  const audiences = identity.audiences.filter((a) => wanted.includes(a));
  if (audiences.length === 0)
    return {
      authenticated: false,
      user: {},
      error: `token audiences ${JSON.stringify(identity.audiences)} is invalid for the target audiences ${JSON.stringify(wanted)}`,
    };
  return { authenticated: true, user: userInfo(identity.user), audiences };
}

function subjectOf(spec: Json): User {
  const extra = Object.fromEntries(
    Object.entries(recordAt(spec, 'extra')).map(([k, v]) => [k, Array.isArray(v) ? (v as string[]) : []]),
  );
  return { name: textAt(spec, 'user'), uid: textAt(spec, 'uid'), groups: textsAt(spec, 'groups'), extra };
}

function accessStatus(store: ObjectStore, user: User, spec: Json): Json {
  const resource = spec['resourceAttributes'];
  const path = spec['nonResourceAttributes'];
  if (isJson(resource) === isJson(path))
    throw badRequest('exactly one of resourceAttributes or nonResourceAttributes must be specified');
  const info = isJson(resource) ? resourceAttributes(resource) : pathAttributes(isJson(path) ? path : {});
  const verdict = authorize(store, user, info);
  return { allowed: verdict.allowed, ...(verdict.reason === '' ? {} : { reason: verdict.reason }) };
}

function resourceAttributes(attributes: Json): RequestInfo {
  const requirements = recordsAt(attributes, 'fieldSelector', 'requirements');
  return {
    ...NO_REQUEST,
    isResource: true,
    verb: textAt(attributes, 'verb'),
    group: textAt(attributes, 'group'),
    version: textAt(attributes, 'version'),
    resource: textAt(attributes, 'resource'),
    subresource: textAt(attributes, 'subresource'),
    namespace: textAt(attributes, 'namespace'),
    name: textAt(attributes, 'name'),
    fieldTerms: [
      ...fieldTerms(textAt(attributes, 'fieldSelector', 'rawSelector')),
      ...requirements.map((r) => ({
        field: textAt(r, 'key'),
        equal: textAt(r, 'operator') === 'In',
        value: textsAt(r, 'values')[0] ?? '',
      })),
    ],
  };
}

const pathAttributes = (attributes: Json): RequestInfo => ({
  ...NO_REQUEST,
  verb: textAt(attributes, 'verb'),
  path: textAt(attributes, 'path'),
});

function rulesStatus(store: ObjectStore, user: User, namespace: string): Json {
  const rules = [...rulesOf(store, user, namespace)].map((r) => r.rule);
  return {
    resourceRules: rules.filter((r) => r['resources'] !== undefined),
    nonResourceRules: rules.filter((r) => r['nonResourceURLs'] !== undefined),
    incomplete: false,
  };
}
