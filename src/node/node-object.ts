// The Node object from facts: pure. `initialNode` is what registration posts, `nodeStatus` what every report says,
// `reconciledNode` what registration changes on a node that already exists, `nodeStatusPatch` how a change is sent.
import type { Node, NodeAddress, NodeStatus, RuntimeHandlerStatus, Taint } from '../core/node.ts';
import type { ResourceList } from '../core/pod.ts';
import { isExtendedResource } from '../core/resource-names.ts';
import { apiTime } from '../core/time.ts';
import { NODE_MERGE_KEYS, plain, sameJson, strategicMergeDiff, type JsonObject } from '../kube/patch.ts';
import { isUnspecified } from './addresses.ts';
import { nodeConditions, type Pressure } from './conditions.ts';
import type { HostFacts } from '../host/host-facts.ts';

export type NodeOptions = {
  readonly nodeName: string;
  readonly hostname: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly registerSchedulable: boolean;
  readonly providerId: string;
  readonly externalCloud: boolean;
  /** `--node-ip` entries, as given. */
  readonly nodeIps: readonly string[];
  readonly controllerAttachDetach: boolean;
  /** `localStorageCapacityIsolation`: without it a node has no ephemeral storage to tell of. */
  readonly localStorage: boolean;
  readonly port: number;
  /** -1 means all. */
  readonly maxImages: number;
  readonly kubeletVersion: string;
};

export type ImageFact = {
  readonly repoDigests: readonly string[];
  readonly repoTags: readonly string[];
  readonly sizeBytes: number;
};
export type RuntimeFacts = {
  readonly name: string;
  readonly version: string;
  readonly handlers: readonly RuntimeHandlerStatus[];
  readonly supplementalGroupsPolicy?: boolean;
};

/** Everything a status report says. What could not be found out is absent, and the report keeps what it said before. */
export type NodeFacts = {
  readonly host: HostFacts;
  readonly capacity: ResourceList;
  readonly allocatable: ResourceList;
  readonly addresses?: readonly NodeAddress[];
  readonly runtime?: RuntimeFacts;
  readonly images?: readonly ImageFact[];
  readonly pressure: Pressure;
  /** Every reason against readiness, in upstream's wording: runtime, network, storage, shutdown. */
  readonly notReady: readonly string[];
  /** Absent until the volume manager knows its state. */
  readonly volumesInUse?: readonly string[];
  /** The report is sent although the server seems to know all of it. */
  readonly isAnswerAwaited?: boolean;
  /** Absent with the gate off. */
  readonly declaredFeatures?: readonly string[];
};

export type StatusReport = { readonly status: NodeStatus; readonly events: readonly string[] };

const ATTACH_DETACH = 'volumes.kubernetes.io/controller-managed-attach-detach';
const PROVIDED_NODE_IP = 'alpha.kubernetes.io/provided-node-ip';
const CLOUD_TAINT: Taint = {
  key: 'node.cloudprovider.kubernetes.io/uninitialized',
  value: 'true',
  effect: 'NoSchedule',
};
const REQUIRED = ['cpu', 'memory', 'pods'];
const MAX_IMAGE_NAMES = 5;

export function initialNode(
  options: NodeOptions,
  facts: NodeFacts,
  nowMs: number,
): { node: Node; events: readonly string[] } {
  const taints = [...options.taints, ...(options.externalCloud ? [CLOUD_TAINT] : [])];
  const annotations = registeredAnnotations(options, {});
  const { status, events } = nodeStatus({}, options, facts, nowMs);
  const node: Node = {
    kind: 'Node',
    apiVersion: 'v1',
    metadata: {
      name: options.nodeName,
      labels: { ...defaultLabels(options, facts.host.architecture), ...options.nodeLabels },
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    spec: {
      ...(options.providerId === '' ? {} : { providerID: options.providerId }),
      ...(options.registerSchedulable ? {} : { unschedulable: true }),
      ...(taints.length === 0 ? {} : { taints }),
    },
    status,
  };
  return { node, events };
}

const defaultLabels = (options: NodeOptions, architecture: string): Record<string, string> => ({
  'beta.kubernetes.io/arch': architecture,
  'beta.kubernetes.io/os': 'linux',
  'kubernetes.io/arch': architecture,
  'kubernetes.io/hostname': options.hostname,
  'kubernetes.io/os': 'linux',
});

/** The labels by which images are chosen, as they must be where somebody changed or removed them. */
export function wrongMachineLabels({ metadata }: Node, architecture: string): Record<string, string> {
  const wanted = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': architecture };
  return Object.fromEntries(Object.entries(wanted).filter(([key, value]) => metadata.labels?.[key] !== value));
}

/** Who attaches volumes is settled with registration: the controller must not go on where the kubelet began to. */
function registeredAnnotations(options: NodeOptions, before: Readonly<Record<string, string>>): Record<string, string> {
  const { [ATTACH_DETACH]: _, ...others } = before;
  return reportedAnnotations(options, options.controllerAttachDetach ? { ...others, [ATTACH_DETACH]: 'true' } : others);
}

/** For the cloud controller: the address it is to look for. `0.0.0.0` and `::` only name a family. */
export function reportedAnnotations(
  { externalCloud, nodeIps }: NodeOptions,
  before: Readonly<Record<string, string>>,
): Record<string, string> {
  const { [PROVIDED_NODE_IP]: _, ...others } = before;
  const given = externalCloud && nodeIps.length > 0 && !nodeIps.some(isUnspecified);
  return given ? { ...others, [PROVIDED_NODE_IP]: nodeIps.join(',') } : others;
}

/** The status of the next report, built on the last one. Events name the conditions that moved. */
export function nodeStatus(before: NodeStatus, options: NodeOptions, facts: NodeFacts, nowMs: number): StatusReport {
  const { host, runtime } = facts;
  const required = options.localStorage ? [...REQUIRED, 'ephemeral-storage'] : REQUIRED;
  const missing = required.filter((name) => facts.capacity[name] === undefined);
  const notReady =
    missing.length === 0
      ? facts.notReady
      : [...facts.notReady, `missing node capacity for resources: ${missing.join(', ')}`];
  const { conditions, events } = nodeConditions(before.conditions ?? [], facts.pressure, notReady, apiTime(nowMs));
  const images = facts.images === undefined ? before.images : imageList(facts.images, options.maxImages);
  const handlers = runtime === undefined ? before.runtimeHandlers : handlerList(runtime.handlers);
  const policy = runtime?.supplementalGroupsPolicy;
  const features = policy === undefined ? before.features : { supplementalGroupsPolicy: policy };
  // The cloud's controller may have set them since the facts were read: its word counts.
  const cloudAddresses = options.externalCloud && (before.addresses ?? []).length > 0;
  const addresses = cloudAddresses ? before.addresses : (facts.addresses ?? before.addresses);
  const volumesInUse = facts.volumesInUse ?? before.volumesInUse;
  const declared = facts.declaredFeatures ?? [];
  const status: NodeStatus = {
    ...before,
    capacity: { ...ofOthers(before.capacity), ...facts.capacity },
    allocatable: { ...leftToOthers(before.allocatable), ...ofOthers(before.capacity), ...facts.allocatable },
    conditions,
    ...(addresses === undefined ? {} : { addresses }),
    daemonEndpoints: { kubeletEndpoint: { Port: options.port } },
    nodeInfo: {
      machineID: host.machineId,
      systemUUID: host.systemUuid,
      bootID: host.bootId,
      kernelVersion: host.kernelVersion,
      osImage: host.osImage,
      containerRuntimeVersion: runtime === undefined ? 'Unknown' : `${runtime.name}://${runtime.version}`,
      kubeletVersion: options.kubeletVersion,
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture: host.architecture,
      ...(host.swapBytes > 0 ? { swap: { capacity: host.swapBytes } } : {}),
    },
    ...(images === undefined ? {} : { images }),
    ...(volumesInUse === undefined ? {} : { volumesInUse }),
    ...(handlers === undefined ? {} : { runtimeHandlers: handlers }),
    ...(features === undefined ? {} : { features }),
    ...(declared.length === 0 ? {} : { declaredFeatures: [...declared].sort() }),
  };
  return { status, events };
}

/**
 * What others put into the node's capacity is theirs to change, and allocatable as it is: resources of any domain, also
 * below `kubernetes.io/`. Sizes of huge pages that are not ours any more are nobody's.
 */
const ofOthers = (list: ResourceList = {}): ResourceList =>
  Object.fromEntries(Object.entries(list).filter(([name]) => !isHugepage(name)));

/** Of what is allocatable without being in the capacity, extended resources go. */
const leftToOthers = (list: ResourceList = {}): ResourceList =>
  Object.fromEntries(Object.entries(ofOthers(list)).filter(([name]) => !isExtendedResource(name)));

const imageList = (images: readonly ImageFact[], max: number): NonNullable<NodeStatus['images']> =>
  [...images]
    .sort((a, b) => b.sizeBytes - a.sizeBytes)
    .slice(0, max < 0 ? images.length : max)
    .map((image) => ({
      names: [...image.repoDigests, ...image.repoTags].slice(0, MAX_IMAGE_NAMES),
      sizeBytes: image.sizeBytes,
    }));

const handlerList = (handlers: readonly RuntimeHandlerStatus[]): readonly RuntimeHandlerStatus[] =>
  [...handlers]
    .sort((a, b) => ((a.name ?? '') < (b.name ?? '') ? -1 : 1))
    .map(({ name, features }) => ({
      name: name ?? '',
      features: {
        recursiveReadOnlyMounts: features?.recursiveReadOnlyMounts ?? false,
        userNamespaces: features?.userNamespaces ?? false,
      },
    }));

/** Labels that registration sets right on a node that exists already. Nothing else of it is ours to change. */
const RECONCILED_LABELS = [
  'kubernetes.io/hostname',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
  'beta.kubernetes.io/instance-type',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'node.kubernetes.io/windows-build',
];

const isHugepage = (name: string): boolean => name.startsWith('hugepages-');

/** `existing` as registration wants it. `zeroExtended`: the device plugins' state is lost, so their counts are too. */
export function reconciledNode(existing: Node, initial: Node, options: NodeOptions, zeroExtended: boolean): Node {
  const labels: Record<string, string> = { ...existing.metadata.labels };
  for (const key of RECONCILED_LABELS) {
    const wanted = initial.metadata.labels?.[key];
    if (wanted === undefined) continue;
    if (wanted === '') delete labels[key];
    else labels[key] = wanted;
  }
  const lists = (which: 'capacity' | 'allocatable'): ResourceList => {
    const fresh = initial.status?.[which] ?? {};
    const list: Record<string, string> = {};
    for (const [name, value] of Object.entries(existing.status?.[which] ?? {})) {
      if (isHugepage(name)) continue;
      list[name] = zeroExtended && isExtendedResource(name) ? '0' : value;
    }
    for (const [name, value] of Object.entries(fresh)) if (isHugepage(name)) list[name] = value;
    return list;
  };
  return {
    ...existing,
    metadata: {
      ...existing.metadata,
      labels,
      annotations: registeredAnnotations(options, existing.metadata.annotations ?? {}),
    },
    status: { ...existing.status, capacity: lists('capacity'), allocatable: lists('allocatable') },
  };
}

/** The body for PATCH nodes/N/status; `{}` when nothing differs. The spec is never part of it. */
export function nodeStatusPatch(before: Node, after: Node): JsonObject {
  const strip = ({ metadata, status }: Node, addresses: readonly NodeAddress[] | undefined): object => ({
    metadata: { labels: metadata.labels, annotations: metadata.annotations },
    status: { ...status, addresses },
  });
  const was = before.status?.addresses ?? [];
  const is = after.status?.addresses ?? [];
  // The API merges addresses by type, which two addresses of one type do not survive: the list is replaced instead.
  const replaceAddresses = was.length > 0 && !sameJson(plain(was), plain(is));
  const patch = strategicMergeDiff(strip(before, was), strip(after, replaceAddresses ? was : is), NODE_MERGE_KEYS);
  if (!replaceAddresses) return patch;
  const status = { ...(patch['status'] as JsonObject | undefined), addresses: plain([...is, { $patch: 'replace' }]) };
  return { ...patch, status };
}

/** Whether a report says anything new. Heartbeat times alone do not count. */
export function statusChanged(before: NodeStatus, after: NodeStatus): boolean {
  const comparable = (status: NodeStatus): JsonObject =>
    plain({
      ...status,
      conditions: [...(status.conditions ?? [])]
        .map((c) => ({ ...c, lastHeartbeatTime: null }))
        .sort((a, b) => (a.type < b.type ? -1 : 1)),
    }) as JsonObject;
  return !sameJson(comparable(before), comparable(after));
}

/** Facts are read before the first part runs. */
export function prepared(facts: NodeFacts | undefined): NodeFacts {
  if (facts === undefined) throw new Error('node facts are not known yet');
  return facts;
}
