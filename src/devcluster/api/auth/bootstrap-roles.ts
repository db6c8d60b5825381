// The roles and bindings a fresh cluster starts with: a small part of what the real one has, with the same names.
import type { Json } from '../objects.ts';

const rule = (apiGroups: readonly string[], resources: readonly string[], verbs: readonly string[]): Json => ({
  apiGroups,
  resources,
  verbs,
});
const paths = (...nonResourceURLs: string[]): Json => ({ nonResourceURLs, verbs: ['get'] });
const READ = ['get', 'list', 'watch'];
const WRITE = [...READ, 'create', 'update', 'patch', 'delete', 'deletecollection'];
const CSR = 'certificates.k8s.io';

const NAMESPACED = [
  rule([''], ['pods', 'services', 'configmaps', 'persistentvolumeclaims', 'serviceaccounts', 'endpoints'], WRITE),
  rule([''], ['pods/exec', 'pods/attach', 'pods/portforward', 'pods/proxy', 'services/proxy'], ['get', 'create']),
  rule(['apps'], ['*'], WRITE),
  rule(['batch'], ['*'], WRITE),
];
const VIEW = [
  rule([''], ['pods', 'pods/log', 'pods/status', 'services', 'configmaps', 'endpoints', 'events', 'namespaces'], READ),
  rule([''], ['persistentvolumeclaims', 'serviceaccounts', 'resourcequotas', 'limitranges'], READ),
  rule(['apps', 'batch', 'policy', 'discovery.k8s.io', 'events.k8s.io'], ['*'], READ),
];

const ROLES: Readonly<Record<string, readonly Json[]>> = {
  'cluster-admin': [rule(['*'], ['*'], ['*']), { nonResourceURLs: ['*'], verbs: ['*'] }],
  admin: [
    ...NAMESPACED,
    ...VIEW,
    rule([''], ['secrets'], WRITE),
    rule(['rbac.authorization.k8s.io'], ['roles', 'rolebindings'], WRITE),
  ],
  edit: [...NAMESPACED, ...VIEW, rule([''], ['secrets'], WRITE)],
  view: VIEW,
  'system:basic-user': [
    rule(['authorization.k8s.io'], ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'], ['create']),
    rule(['authentication.k8s.io'], ['selfsubjectreviews'], ['create']),
  ],
  'system:discovery': [
    paths(
      '/api',
      '/api/*',
      '/apis',
      '/apis/*',
      '/healthz',
      '/livez',
      '/openapi',
      '/openapi/*',
      '/readyz',
      '/version',
      '/version/',
    ),
  ],
  'system:public-info-viewer': [paths('/healthz', '/livez', '/readyz', '/version', '/version/')],
  'system:node-bootstrapper': [rule([CSR], ['certificatesigningrequests'], ['create', 'get', 'list', 'watch'])],
  'system:kubelet-api-admin': [
    rule([''], ['nodes'], ['get', 'list', 'watch', 'proxy']),
    rule(
      [''],
      ['nodes/proxy', 'nodes/stats', 'nodes/log', 'nodes/metrics', 'nodes/configz', 'nodes/healthz', 'nodes/pods'],
      ['*'],
    ),
  ],
};

const BINDINGS: Readonly<Record<string, readonly string[]>> = {
  'cluster-admin': ['system:masters'],
  'system:basic-user': ['system:authenticated'],
  'system:discovery': ['system:authenticated'],
  'system:public-info-viewer': ['system:authenticated', 'system:unauthenticated'],
  'system:node-bootstrapper': ['system:bootstrappers'],
};

const LABELS = { 'kubernetes.io/bootstrapping': 'rbac-defaults' };

export const bootstrapClusterRoles = (): Json[] =>
  Object.entries(ROLES).map(([name, rules]) => ({ metadata: { name, labels: LABELS }, rules }));

export const bootstrapClusterRoleBindings = (): Json[] =>
  Object.entries(BINDINGS).map(([name, groups]) => ({
    metadata: { name, labels: LABELS },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: groups.map((group) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group })),
  }));
