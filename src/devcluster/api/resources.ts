// Every resource the server knows: names, scope, subresources, the fields it can be selected by. One row a resource;
// discovery, OpenAPI, routing, storage and authorization all read this table.
import { at, textAt, type ApiObject } from './objects.ts';

export type Subresource = {
  readonly name: string;
  readonly kind: string;
  /** Of `kind`, when it is not the parent's. */
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly string[];
};

export type ResourceType = {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly string[];
  readonly subresources: readonly Subresource[];
  /** Has a status that only the status subresource may change. */
  readonly hasStatus: boolean;
  /** Counts changes of its spec in metadata.generation. */
  readonly counted: boolean;
  /** Kept, but without the effect it has in a real cluster: what the client is told when it makes one. */
  readonly inert?: string;
  /** Only listed here so that a client is told clearly why there can be none. */
  readonly refused?: string;
  /** Where the store keeps it. Two resources may be two views of one store. */
  readonly storage: string;
  readonly fields: Readonly<Record<string, (object: ApiObject) => string>>;
};

const ALL = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const STATUS: Subresource = { name: 'status', kind: '', verbs: ['get', 'patch', 'update'] };

type Row = {
  kind: string;
  resource?: string;
  cluster?: boolean;
  short?: readonly string[];
  categories?: readonly string[];
  verbs?: readonly string[];
  status?: boolean;
  counted?: boolean;
  subresources?: readonly Subresource[];
  fields?: Readonly<Record<string, string | ((object: ApiObject) => string)>>;
  storage?: string;
  inert?: string;
  refused?: string;
};

const plainText = (value: unknown): string =>
  typeof value === 'string' ? value : typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
const fieldAt =
  (path: string): ((object: ApiObject) => string) =>
  (object) =>
    plainText(at(object, ...path.split('.')));
const boolAt =
  (path: string): ((object: ApiObject) => string) =>
  (object) =>
    String(at(object, ...path.split('.')) === true);

function define(groupVersion: string, rows: readonly Row[]): ResourceType[] {
  const [group, version] = groupVersion.includes('/') ? groupVersion.split('/') : ['', groupVersion];
  return rows.map((row) => {
    const resource = row.resource ?? `${row.kind.toLowerCase()}s`;
    const fields: Record<string, (object: ApiObject) => string> = { 'metadata.name': fieldAt('metadata.name') };
    if (row.cluster !== true) fields['metadata.namespace'] = fieldAt('metadata.namespace');
    for (const [name, read] of Object.entries(row.fields ?? {}))
      fields[name] = typeof read === 'string' ? fieldAt(read) : read;
    return {
      group: group ?? '',
      version: version ?? '',
      resource,
      singular: row.kind.toLowerCase(),
      kind: row.kind,
      namespaced: row.cluster !== true,
      shortNames: row.short ?? [],
      categories: row.categories ?? [],
      verbs: row.verbs ?? ALL,
      subresources: [...(row.status === true ? [{ ...STATUS, kind: row.kind }] : []), ...(row.subresources ?? [])],
      hasStatus: row.status === true,
      counted: row.counted === true,
      storage: row.storage ?? (group === '' ? resource : `${group}/${resource}`),
      fields,
      ...(row.inert === undefined ? {} : { inert: row.inert }),
      ...(row.refused === undefined ? {} : { refused: row.refused }),
    };
  });
}

const same = (...names: readonly string[]): Record<string, string> => Object.fromEntries(names.map((n) => [n, n]));
const CONNECT_ALL = ['create', 'delete', 'get', 'patch', 'update'];
const REVIEW = ['create'];

const POD_SUBRESOURCES: readonly Subresource[] = [
  { name: 'attach', kind: 'PodAttachOptions', verbs: ['create', 'get'] },
  { name: 'binding', kind: 'Binding', verbs: ['create'] },
  { name: 'ephemeralcontainers', kind: 'Pod', verbs: ['get', 'patch', 'update'] },
  { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
  { name: 'exec', kind: 'PodExecOptions', verbs: ['create', 'get'] },
  { name: 'log', kind: 'Pod', verbs: ['get'] },
  { name: 'portforward', kind: 'PodPortForwardOptions', verbs: ['create', 'get'] },
  { name: 'proxy', kind: 'PodProxyOptions', verbs: CONNECT_ALL },
  { name: 'resize', kind: 'Pod', verbs: ['get', 'patch', 'update'] },
];

const INVOLVED = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'];
const eventFields = (prefix: string): Record<string, string | ((object: ApiObject) => string)> => ({
  ...Object.fromEntries(INVOLVED.map((f) => [`${prefix}.${f}`, `involvedObject.${f}`])),
  ...same('reason', 'type', 'reportingComponent'),
  source: (event) => textAt(event, 'source', 'component') || textAt(event, 'reportingComponent'),
});

const SCALE: Subresource = {
  name: 'scale',
  kind: 'Scale',
  group: 'autoscaling',
  version: 'v1',
  verbs: ['get', 'patch', 'update'],
};

const CORE = define('v1', [
  { kind: 'ConfigMap', short: ['cm'] },
  { kind: 'Endpoints', resource: 'endpoints', short: ['ep'] },
  { kind: 'Event', short: ['ev'], fields: eventFields('involvedObject') },
  { kind: 'LimitRange', short: ['limits'], inert: 'limit ranges are stored, but have no effect in this cluster' },
  {
    kind: 'Namespace',
    cluster: true,
    short: ['ns'],
    status: true,
    fields: same('status.phase'),
    subresources: [{ name: 'finalize', kind: 'Namespace', verbs: ['update'] }],
    verbs: ALL.filter((v) => v !== 'deletecollection'),
  },
  {
    kind: 'Node',
    cluster: true,
    short: ['no'],
    status: true,
    subresources: [{ name: 'proxy', kind: 'NodeProxyOptions', verbs: CONNECT_ALL }],
    fields: { 'spec.unschedulable': boolAt('spec.unschedulable') },
  },
  { kind: 'PersistentVolumeClaim', short: ['pvc'], status: true },
  { kind: 'PersistentVolume', cluster: true, short: ['pv'], status: true },
  {
    kind: 'Pod',
    short: ['po'],
    categories: ['all'],
    status: true,
    counted: true,
    subresources: POD_SUBRESOURCES,
    fields: {
      ...same(
        'spec.nodeName',
        'spec.restartPolicy',
        'spec.schedulerName',
        'spec.serviceAccountName',
        'status.phase',
        'status.podIP',
        'status.nominatedNodeName',
      ),
      'spec.hostNetwork': boolAt('spec.hostNetwork'),
    },
  },
  {
    kind: 'ResourceQuota',
    short: ['quota'],
    status: true,
    inert: 'resource quotas are stored, but not enforced in this cluster',
  },
  { kind: 'Secret', fields: same('type') },
  {
    kind: 'ServiceAccount',
    short: ['sa'],
    subresources: [
      { name: 'token', kind: 'TokenRequest', group: 'authentication.k8s.io', version: 'v1', verbs: ['create'] },
    ],
  },
  {
    kind: 'Service',
    short: ['svc'],
    categories: ['all'],
    status: true,
    subresources: [{ name: 'proxy', kind: 'ServiceProxyOptions', verbs: CONNECT_ALL }],
    fields: same('spec.clusterIP', 'spec.type'),
  },
]);

const APPS = define('apps/v1', [
  { kind: 'ControllerRevision' },
  { kind: 'DaemonSet', short: ['ds'], categories: ['all'], status: true, counted: true },
  {
    kind: 'Deployment',
    short: ['deploy'],
    categories: ['all'],
    status: true,
    counted: true,
    subresources: [SCALE],
  },
  { kind: 'ReplicaSet', short: ['rs'], categories: ['all'], status: true, counted: true, subresources: [SCALE] },
  {
    kind: 'StatefulSet',
    short: ['sts'],
    categories: ['all'],
    status: true,
    counted: true,
    subresources: [SCALE],
  },
]);

const REVIEWS = [
  ...define('authentication.k8s.io/v1', [
    { kind: 'SelfSubjectReview', cluster: true, verbs: REVIEW },
    { kind: 'TokenReview', cluster: true, verbs: REVIEW },
  ]),
  ...define('authorization.k8s.io/v1', [
    { kind: 'LocalSubjectAccessReview', verbs: REVIEW },
    { kind: 'SelfSubjectAccessReview', cluster: true, verbs: REVIEW },
    { kind: 'SelfSubjectRulesReview', cluster: true, verbs: REVIEW },
    { kind: 'SubjectAccessReview', cluster: true, verbs: REVIEW },
  ]),
];

const CLUSTER = [
  ...define('batch/v1', [
    { kind: 'CronJob', short: ['cj'], categories: ['all'], status: true, counted: true },
    { kind: 'Job', categories: ['all'], status: true, counted: true },
  ]),
  ...define('certificates.k8s.io/v1', [
    {
      kind: 'CertificateSigningRequest',
      cluster: true,
      short: ['csr'],
      status: true,
      subresources: [{ name: 'approval', kind: 'CertificateSigningRequest', verbs: ['get', 'patch', 'update'] }],
      fields: same('spec.signerName'),
    },
  ]),
  ...define('certificates.k8s.io/v1beta1', [
    { kind: 'ClusterTrustBundle', cluster: true, fields: same('spec.signerName') },
    { kind: 'PodCertificateRequest', status: true, fields: same('spec.signerName', 'spec.podName', 'spec.nodeName') },
  ]),
  ...define('coordination.k8s.io/v1', [{ kind: 'Lease' }]),
  ...define('discovery.k8s.io/v1', [{ kind: 'EndpointSlice' }]),
  ...define('events.k8s.io/v1', [
    { kind: 'Event', short: ['ev'], storage: 'events', fields: eventFields('regarding') },
  ]),
  ...define('node.k8s.io/v1', [{ kind: 'RuntimeClass', resource: 'runtimeclasses', cluster: true }]),
  ...define('policy/v1', [
    {
      kind: 'PodDisruptionBudget',
      short: ['pdb'],
      status: true,
      counted: true,
      inert: 'disruption budgets are stored, but evictions do not ask for them in this cluster',
    },
  ]),
  ...define('rbac.authorization.k8s.io/v1', [
    { kind: 'ClusterRoleBinding', cluster: true },
    { kind: 'ClusterRole', cluster: true },
    { kind: 'RoleBinding' },
    { kind: 'Role' },
  ]),
  ...define('resource.k8s.io/v1', [
    { kind: 'DeviceClass', resource: 'deviceclasses', cluster: true },
    { kind: 'ResourceClaim', status: true },
    { kind: 'ResourceClaimTemplate' },
    { kind: 'ResourceSlice', cluster: true, fields: same('spec.nodeName', 'spec.driver') },
  ]),
  ...define('scheduling.k8s.io/v1', [
    { kind: 'PriorityClass', resource: 'priorityclasses', cluster: true, short: ['pc'] },
  ]),
  ...define('storage.k8s.io/v1', [
    { kind: 'CSIDriver', cluster: true },
    { kind: 'CSINode', cluster: true },
    { kind: 'CSIStorageCapacity', resource: 'csistoragecapacities' },
    { kind: 'StorageClass', resource: 'storageclasses', cluster: true, short: ['sc'] },
    { kind: 'VolumeAttachment', cluster: true, status: true },
  ]),
];

const refused = (why: string): { readonly refused: string; readonly verbs: readonly string[] } => ({
  refused: `this is a development cluster of one node: ${why}`,
  verbs: ['create', 'delete', 'get', 'list'],
});
const NO_WEBHOOKS = refused('it calls no webhooks');
const NO_POLICIES = refused('it has no admission policies');
const NO_SCALING = { short: ['hpa'], ...refused('it does not scale by load; use "kubectl scale"') };

/** What people try in a cluster and will not find in this one. */
const ABSENT = [
  ...define('v1', [{ kind: 'ReplicationController', short: ['rc'], ...refused('use a Deployment') }]),
  ...define('admissionregistration.k8s.io/v1', [
    { kind: 'MutatingWebhookConfiguration', cluster: true, ...NO_WEBHOOKS },
    { kind: 'ValidatingWebhookConfiguration', cluster: true, ...NO_WEBHOOKS },
    { kind: 'ValidatingAdmissionPolicy', resource: 'validatingadmissionpolicies', cluster: true, ...NO_POLICIES },
    { kind: 'ValidatingAdmissionPolicyBinding', cluster: true, ...NO_POLICIES },
  ]),
  ...define('apiextensions.k8s.io/v1', [
    {
      kind: 'CustomResourceDefinition',
      cluster: true,
      short: ['crd', 'crds'],
      ...refused('it has no custom resources'),
    },
  ]),
  ...define('autoscaling/v2', [{ kind: 'HorizontalPodAutoscaler', ...NO_SCALING }]),
  ...define('autoscaling/v1', [{ kind: 'HorizontalPodAutoscaler', ...NO_SCALING }]),
  ...define('networking.k8s.io/v1', [
    {
      kind: 'Ingress',
      resource: 'ingresses',
      short: ['ing'],
      ...refused('nothing serves ingresses; use "kubectl port-forward" or a hostPort'),
    },
    {
      kind: 'IngressClass',
      resource: 'ingressclasses',
      cluster: true,
      ...refused('nothing serves ingresses; use "kubectl port-forward" or a hostPort'),
    },
    {
      kind: 'NetworkPolicy',
      resource: 'networkpolicies',
      short: ['netpol'],
      ...refused('nothing enforces network policies'),
    },
  ]),
];

export const RESOURCES: readonly ResourceType[] = [...CORE, ...APPS, ...REVIEWS, ...CLUSTER, ...ABSENT];

const byName = new Map(RESOURCES.map((r) => [`${r.group}/${r.version}/${r.resource}`, r]));

export const findResource = (group: string, version: string, resource: string): ResourceType | undefined =>
  byName.get(`${group}/${version}/${resource}`);

/** One that must exist because the code names it. */
export function resourceNamed(storage: string): ResourceType {
  const found = RESOURCES.find((r) => r.storage === storage);
  if (found === undefined) throw new Error(`no resource ${storage}`);
  return found;
}

export const resourceOfKind = (apiVersion: string, kind: string): ResourceType | undefined =>
  RESOURCES.find((r) => r.kind === kind && apiVersionOf(r) === apiVersion);

export const apiVersionOf = (type: { readonly group: string; readonly version: string }): string =>
  type.group === '' ? type.version : `${type.group}/${type.version}`;

export const groupVersions = (): readonly { group: string; version: string }[] => {
  const seen = new Map<string, { group: string; version: string }>();
  for (const { group, version } of RESOURCES) seen.set(`${group}/${version}`, { group, version });
  return [...seen.values()];
};
