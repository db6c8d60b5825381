// Which lists of the built-in types are merged by key, and which maps keep only the keys a patch retains. Everything
// not listed here is replaced whole.

export type MergeSchema = {
  /** Fields of a map, or of each element when this describes a keyed list. */
  readonly fields?: Readonly<Record<string, MergeSchema>>;
  /** A list merged by this key of its elements. */
  readonly key?: string;
  /** A list of plain values merged as a set. */
  readonly set?: boolean;
  /** Clients send the keys to keep with a patch: of the map, or of each element. */
  readonly retainKeys?: boolean;
};

const keyed = (key: string, fields?: Readonly<Record<string, MergeSchema>>): MergeSchema =>
  fields === undefined ? { key } : { key, fields };
const map = (fields: Readonly<Record<string, MergeSchema>>): MergeSchema => ({ fields });
const SET: MergeSchema = { set: true };

const META: MergeSchema = map({ ownerReferences: keyed('uid'), finalizers: SET });
const STATUS_CONDITIONS: MergeSchema = map({ conditions: keyed('type') });

const CONTAINER: Readonly<Record<string, MergeSchema>> = {
  ports: keyed('containerPort'),
  env: keyed('name'),
  volumeMounts: keyed('mountPath'),
  volumeDevices: keyed('devicePath'),
};

const POD_SPEC: MergeSchema = map({
  volumes: { ...keyed('name'), retainKeys: true },
  containers: keyed('name', CONTAINER),
  initContainers: keyed('name', CONTAINER),
  ephemeralContainers: keyed('name', CONTAINER),
  imagePullSecrets: keyed('name'),
  hostAliases: keyed('ip'),
  topologySpreadConstraints: keyed('topologyKey'),
  schedulingGates: keyed('name'),
  resourceClaims: keyed('name'),
});

const POD: MergeSchema = map({
  metadata: META,
  spec: POD_SPEC,
  status: map({
    conditions: keyed('type'),
    podIPs: keyed('ip'),
    hostIPs: keyed('ip'),
    resourceClaimStatuses: keyed('name'),
  }),
});

const workload: MergeSchema = map({
  metadata: META,
  spec: map({ template: map({ metadata: META, spec: POD_SPEC }) }),
  status: STATUS_CONDITIONS,
});

const plain = (fields: Readonly<Record<string, MergeSchema>> = {}): MergeSchema => map({ metadata: META, ...fields });

const BY_KIND: Readonly<Record<string, MergeSchema>> = {
  Pod: POD,
  Deployment: map({
    ...workload.fields,
    spec: map({ ...workload.fields?.['spec']?.fields, strategy: { retainKeys: true } }),
  }),
  ReplicaSet: workload,
  DaemonSet: workload,
  Job: workload,
  StatefulSet: workload,
  CronJob: plain({ spec: map({ jobTemplate: map({ metadata: META, spec: workload.fields?.['spec'] ?? {} }) }) }),
  Node: plain({
    spec: map({ podCIDRs: SET }),
    status: map({ conditions: keyed('type'), addresses: keyed('type') }),
  }),
  Service: plain({ spec: map({ ports: keyed('port') }), status: STATUS_CONDITIONS }),
  ServiceAccount: plain({ secrets: keyed('name') }),
  Namespace: plain({ status: STATUS_CONDITIONS }),
  PersistentVolumeClaim: plain({ status: STATUS_CONDITIONS }),
  PodCertificateRequest: plain({ status: STATUS_CONDITIONS }),
  CSINode: plain({ spec: map({ drivers: keyed('name') }) }),
};

export const mergeSchemaOf = (kind: string): MergeSchema => BY_KIND[kind] ?? plain();
