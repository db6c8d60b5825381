// The columns between NAME and AGE, per resource. A row with its own AGE column places it itself.
import { parseTimeMs } from '../../core/time.ts';
import { at, numberAt, recordAt, recordsAt, textAt, textsAt, type ApiObject, type Json } from './objects.ts';
import { readinessGatesCell, readyCell, restartsCell, statusCell } from './pod-cells.ts';
import { ageOf, humanDuration, type Column } from './age.ts';
import { STORAGE_CELLS } from './storage-cells.ts';

type Cell = Pick<Column, 'name' | 'cell'> & Partial<Column>;

const NONE = '<none>';
const text =
  (...path: string[]): Column['cell'] =>
  (o) =>
    textAt(o, ...path);
const orNone =
  (...path: string[]): Column['cell'] =>
  (o) =>
    textAt(o, ...path) || NONE;
const count =
  (...path: string[]): Column['cell'] =>
  (o) =>
    numberAt(o, ...path) ?? 0;
const size =
  (...path: string[]): Column['cell'] =>
  (o) => {
    const found = at(o, ...path);
    return Array.isArray(found) ? found.length : Object.keys(recordAt(o, ...path)).length;
  };
const wide = (name: string, cell: Column['cell']): Cell => ({ name, cell, priority: 1 });
const integer = (name: string, cell: Column['cell']): Cell => ({ name, cell, type: 'integer' });
const AGE: Cell = { name: 'Age', cell: (o, now) => ageOf(o.metadata.creationTimestamp, now) };

const labelsText = (labels: Json): string =>
  Object.entries(labels)
    .map(([k, v]) => `${k}=${String(v)}`)
    .join(',') || NONE;

function selectorText(o: ApiObject): string {
  const selector = recordAt(o, 'spec', 'selector');
  const labels = recordAt(selector, 'matchLabels');
  return labelsText(Object.keys(labels).length > 0 ? labels : {});
}

const templates =
  (field: 'name' | 'image', ...path: string[]): Column['cell'] =>
  (o) =>
    recordsAt(o, ...path, 'spec', 'template', 'spec', 'containers')
      .map((c) => textAt(c, field))
      .join(',');
const TEMPLATE_WIDE: readonly Cell[] = [
  wide('Containers', templates('name')),
  wide('Images', templates('image')),
  wide('Selector', selectorText),
];

const POD: readonly Cell[] = [
  { name: 'Ready', cell: readyCell },
  { name: 'Status', cell: statusCell },
  { name: 'Restarts', cell: (o, now) => restartsCell(o, now, humanDuration) },
  AGE,
  wide('IP', (o) => textAt(recordsAt(o, 'status', 'podIPs')[0], 'ip') || NONE),
  wide('Node', orNone('spec', 'nodeName')),
  wide('Nominated Node', orNone('status', 'nominatedNodeName')),
  wide('Readiness Gates', readinessGatesCell),
];

function nodeStatus(o: ApiObject): string {
  const ready = recordsAt(o, 'status', 'conditions').find((c) => c['type'] === 'Ready');
  const shown = ready === undefined ? 'Unknown' : ready['status'] === 'True' ? 'Ready' : 'NotReady';
  return at(o, 'spec', 'unschedulable') === true ? `${shown},SchedulingDisabled` : shown;
}

function nodeRoles(o: ApiObject): string {
  const roles = Object.keys(o.metadata.labels ?? {})
    .filter((k) => k.startsWith('node-role.kubernetes.io/'))
    .map((k) => k.slice('node-role.kubernetes.io/'.length));
  return roles.sort().join(',') || NONE;
}

const address =
  (type: string): Column['cell'] =>
  (o) =>
    textAt(
      recordsAt(o, 'status', 'addresses').find((a) => a['type'] === type),
      'address',
    ) || NONE;

const NODE: readonly Cell[] = [
  { name: 'Status', cell: nodeStatus },
  { name: 'Roles', cell: nodeRoles },
  AGE,
  { name: 'Version', cell: text('status', 'nodeInfo', 'kubeletVersion') },
  wide('Internal-IP', address('InternalIP')),
  wide('External-IP', address('ExternalIP')),
  wide('OS-Image', text('status', 'nodeInfo', 'osImage')),
  wide('Kernel-Version', text('status', 'nodeInfo', 'kernelVersion')),
  wide('Container-Runtime', text('status', 'nodeInfo', 'containerRuntimeVersion')),
];

/** The first three, and how many more. */
const some = (all: readonly string[], none: string): string =>
  all.length === 0 ? none : `${all.slice(0, 3).join(',')}${all.length > 3 ? ` + ${all.length - 3} more...` : ''}`;

const subsetTexts = (o: ApiObject): string =>
  some(
    recordsAt(o, 'subsets').flatMap((subset) => {
      const numbers = recordsAt(subset, 'ports').map((port) => `:${numberAt(port, 'port') ?? 0}`);
      const addresses = recordsAt(subset, 'addresses').map((address_) => textAt(address_, 'ip'));
      return addresses.flatMap((ip) => (numbers.length === 0 ? [ip] : numbers.map((port) => ip + port)));
    }),
    NONE,
  );

const ports = (o: ApiObject): string =>
  recordsAt(o, 'spec', 'ports')
    .map((p) => {
      const nodePort = numberAt(p, 'nodePort') ?? 0;
      return `${numberAt(p, 'port') ?? 0}${nodePort > 0 ? `:${nodePort}` : ''}/${textAt(p, 'protocol') || 'TCP'}`;
    })
    .join(',') || NONE;

const EVENT: readonly Cell[] = [
  { name: 'Last Seen', cell: (o, now) => ageOf(eventTime(o), now) },
  { name: 'Type', cell: text('type') },
  { name: 'Reason', cell: text('reason') },
  {
    name: 'Object',
    cell: (o) => `${textAt(o, 'involvedObject', 'kind').toLowerCase()}/${textAt(o, 'involvedObject', 'name')}`,
  },
  wide('Subobject', text('involvedObject', 'fieldPath')),
  wide('Source', (o) => [textAt(o, 'source', 'component'), textAt(o, 'source', 'host')].filter(Boolean).join(', ')),
  { name: 'Message', cell: (o) => textAt(o, 'message').trim() },
  wide('First Seen', (o, now) => ageOf(textAt(o, 'firstTimestamp') || textAt(o, 'eventTime') || undefined, now)),
  wide('Count', (o) => String(numberAt(o, 'series', 'count') ?? numberAt(o, 'count') ?? 1)),
  wide('Name', (o) => o.metadata.name),
];

const eventTime = (o: ApiObject): string | undefined =>
  textAt(o, 'series', 'lastObservedTime') || textAt(o, 'lastTimestamp') || textAt(o, 'eventTime') || undefined;

const readyOf = (o: ApiObject): string =>
  `${numberAt(o, 'status', 'readyReplicas') ?? 0}/${numberAt(o, 'spec', 'replicas') ?? 0}`;

function controllerText(o: ApiObject): string {
  const owner = o.metadata.ownerReferences?.find((ref) => ref.controller === true);
  if (owner === undefined) return NONE;
  const [group] = owner.apiVersion.split('/');
  return `${owner.kind.toLowerCase()}${owner.apiVersion.includes('/') ? `.${group}` : ''}/${owner.name}`;
}

function jobDuration(o: ApiObject, now: number): string {
  const start = textAt(o, 'status', 'startTime');
  if (start === '') return '';
  const end = textAt(o, 'status', 'completionTime');
  return humanDuration((end === '' ? now : parseTimeMs(end)) - parseTimeMs(start));
}

function jobStatus(o: ApiObject): string {
  const is = (type: string): boolean =>
    recordsAt(o, 'status', 'conditions').some((c) => c['type'] === type && c['status'] === 'True');
  if (is('Complete')) return 'Complete';
  if (is('Failed')) return 'Failed';
  if (o.metadata.deletionTimestamp !== undefined) return 'Terminating';
  return is('Suspended') ? 'Suspended' : 'Running';
}

function jobCompletions(o: ApiObject): string {
  const done = numberAt(o, 'status', 'succeeded') ?? 0;
  const wanted = numberAt(o, 'spec', 'completions');
  if (wanted !== undefined) return `${done}/${wanted}`;
  const parallelism = numberAt(o, 'spec', 'parallelism') ?? 0;
  return parallelism > 1 ? `${done}/1 of ${parallelism}` : `${done}/1`;
}

function csrCondition(o: ApiObject): string {
  const has = (type: string): boolean => recordsAt(o, 'status', 'conditions').some((c) => c['type'] === type);
  const words = [has('Denied') ? 'Denied' : has('Approved') ? 'Approved' : 'Pending'];
  if (has('Failed')) words.push('Failed');
  if (textAt(o, 'status', 'certificate') !== '') words.push('Issued');
  return words.join(',');
}

const rolePointer = (o: ApiObject): string => `${textAt(o, 'roleRef', 'kind')}/${textAt(o, 'roleRef', 'name')}`;
const yes =
  (...path: string[]): Column['cell'] =>
  (o) =>
    String(at(o, ...path) === true);
export const CELLS: Readonly<Record<string, readonly Cell[]>> = {
  pods: POD,
  nodes: NODE,
  events: EVENT,
  namespaces: [{ name: 'Status', cell: text('status', 'phase') }],
  configmaps: [
    integer('Data', (o) => Object.keys(recordAt(o, 'data')).length + Object.keys(recordAt(o, 'binaryData')).length),
  ],
  secrets: [{ name: 'Type', cell: text('type') }, integer('Data', size('data'))],
  serviceaccounts: [integer('Secrets', size('secrets'))],
  services: [
    { name: 'Type', cell: text('spec', 'type') },
    { name: 'Cluster-IP', cell: orNone('spec', 'clusterIP') },
    { name: 'External-IP', cell: (o) => textsAt(o, 'spec', 'externalIPs').join(',') || NONE },
    { name: 'Port(s)', cell: ports },
    AGE,
    wide('Selector', (o) => labelsText(recordAt(o, 'spec', 'selector'))),
  ],
  endpoints: [{ name: 'Endpoints', cell: subsetTexts }],
  'discovery.k8s.io/endpointslices': [
    { name: 'AddressType', cell: text('addressType') },
    {
      name: 'Ports',
      cell: (o) =>
        some(
          recordsAt(o, 'ports').map((p) => String(numberAt(p, 'port') ?? '*')),
          '<unset>',
        ),
    },
    {
      name: 'Endpoints',
      cell: (o) =>
        some(
          recordsAt(o, 'endpoints').flatMap((e) => textsAt(e, 'addresses')),
          '<unset>',
        ),
    },
  ],
  'apps/deployments': [
    { name: 'Ready', cell: readyOf },
    integer('Up-to-date', count('status', 'updatedReplicas')),
    integer('Available', count('status', 'availableReplicas')),
    AGE,
    ...TEMPLATE_WIDE,
  ],
  'apps/replicasets': [
    integer('Desired', count('spec', 'replicas')),
    integer('Current', count('status', 'replicas')),
    integer('Ready', count('status', 'readyReplicas')),
    AGE,
    ...TEMPLATE_WIDE,
  ],
  'apps/daemonsets': [
    integer('Desired', count('status', 'desiredNumberScheduled')),
    integer('Current', count('status', 'currentNumberScheduled')),
    integer('Ready', count('status', 'numberReady')),
    integer('Up-to-date', count('status', 'updatedNumberScheduled')),
    integer('Available', count('status', 'numberAvailable')),
    { name: 'Node Selector', cell: (o) => labelsText(recordAt(o, 'spec', 'template', 'spec', 'nodeSelector')) },
    AGE,
    ...TEMPLATE_WIDE,
  ],
  'apps/statefulsets': [{ name: 'Ready', cell: readyOf }, AGE, ...TEMPLATE_WIDE.slice(0, 2)],
  'apps/controllerrevisions': [{ name: 'Controller', cell: controllerText }, integer('Revision', count('revision'))],
  'batch/cronjobs': [
    { name: 'Schedule', cell: text('spec', 'schedule') },
    { name: 'Timezone', cell: orNone('spec', 'timeZone') },
    { name: 'Suspend', cell: (o) => (at(o, 'spec', 'suspend') === true ? 'True' : 'False') },
    integer('Active', size('status', 'active')),
    {
      name: 'Last Schedule',
      cell: (o, now) => {
        const last = textAt(o, 'status', 'lastScheduleTime');
        return last === '' ? NONE : ageOf(last, now);
      },
    },
    AGE,
    wide('Containers', templates('name', 'spec', 'jobTemplate')),
    wide('Images', templates('image', 'spec', 'jobTemplate')),
    wide('Selector', () => NONE),
  ],
  'batch/jobs': [
    { name: 'Status', cell: jobStatus },
    { name: 'Completions', cell: jobCompletions },
    { name: 'Duration', cell: jobDuration },
    AGE,
    ...TEMPLATE_WIDE,
  ],
  'coordination.k8s.io/leases': [{ name: 'Holder', cell: text('spec', 'holderIdentity') }],
  'node.k8s.io/runtimeclasses': [{ name: 'Handler', cell: text('handler') }],
  'certificates.k8s.io/certificatesigningrequests': [
    AGE,
    { name: 'SignerName', cell: text('spec', 'signerName') },
    { name: 'Requestor', cell: text('spec', 'username') },
    {
      name: 'RequestedDuration',
      cell: (o) => {
        const seconds = numberAt(o, 'spec', 'expirationSeconds');
        return seconds === undefined ? NONE : humanDuration(seconds * 1000);
      },
    },
    { name: 'Condition', cell: csrCondition },
  ],
  'certificates.k8s.io/clustertrustbundles': [{ name: 'SignerName', cell: text('spec', 'signerName') }],
  'certificates.k8s.io/podcertificaterequests': [
    { name: 'PodName', cell: text('spec', 'podName') },
    { name: 'ServiceAccountName', cell: text('spec', 'serviceAccountName') },
    { name: 'NodeName', cell: text('spec', 'nodeName') },
    { name: 'SignerName', cell: text('spec', 'signerName') },
    { name: 'State', cell: (o) => textAt(recordsAt(o, 'status', 'conditions')[0], 'type') || 'Pending' },
  ],
  'scheduling.k8s.io/priorityclasses': [
    integer('Value', count('value')),
    { name: 'Global-Default', cell: yes('globalDefault') },
    AGE,
    { name: 'PreemptionPolicy', cell: text('preemptionPolicy') },
  ],
  ...STORAGE_CELLS,
  'rbac.authorization.k8s.io/rolebindings': [{ name: 'Role', cell: rolePointer }],
  'rbac.authorization.k8s.io/clusterrolebindings': [{ name: 'Role', cell: rolePointer }],
};
