// A node without an API server: its objects are manifests beside the static pods, its events stay on the node.
import type { Node } from '../core/node.ts';
import { ApiEventRecorder } from '../kube/events.ts';
import { notFound } from '../lib/errors.ts';
import { nodeAddresses, parseNodeIps, readHostNetwork } from '../node/addresses.ts';
import { goArch } from '../node/host-facts.ts';
import type { LocalObjectStore } from '../sources/local-objects.ts';
import type { ClusterPort, ObjectChange } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export async function buildStandalone(
  base: Foundation,
  edge: Pick<RuntimeEdge, 'resources' | 'health'>,
  objects: LocalObjectStore,
  onObjectChange: ObjectChange,
): Promise<ClusterPort> {
  const { clock, log, nodeName, flags } = base;
  const events = new ApiEventRecorder({ clock, log: log.child({ component: 'events' }) }, { nodeName });
  const network = await readHostNetwork(nodeName);
  const addresses = nodeAddresses(
    { hostname: nodeName, nodeIps: parseNodeIps(flags.nodeIp), externalCloud: false },
    network,
    [],
  );
  const nodeIps = addresses.filter((a) => a.type === 'InternalIP').map((a) => a.address);
  objects.onObjectChange(onObjectChange);
  const node = (): Node => standaloneNode(base, edge, addresses);
  return {
    events,
    prepare: () => Promise.resolve(),
    parts: [events],
    sources: [],
    configMap: async (namespace, name) =>
      objects.configMap(namespace, name) ?? notFound(`configmap "${name}" not found`),
    secret: async (namespace, name) => objects.secret(namespace, name) ?? notFound(`secret "${name}" not found`),
    serviceAccountOf: () => Promise.resolve(undefined),
    services: () => [],
    runtimeHandler: (className) => notFound(`runtimeclass.node.k8s.io "${className}" not found`),
    register: () => undefined,
    unregister: () => undefined,
    node,
    freshNode: async () => node(),
    nodeIps: () => nodeIps,
    nodeChanged: () => undefined,
    statusChanged: () => undefined,
    podsRead: () => Promise.resolve(),
    mirrorStatus: () => undefined,
    keepMirror: () => undefined,
    removeMirror: () => Promise.resolve(),
  };
}

/** Enough of a Node for admission: labels to select by and what can be asked for. */
function standaloneNode(
  { nodeName, flags }: Foundation,
  { resources, health }: Pick<RuntimeEdge, 'resources' | 'health'>,
  addresses: NonNullable<Node['status']>['addresses'],
): Node {
  return {
    metadata: {
      name: nodeName,
      labels: {
        'kubernetes.io/hostname': nodeName,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': goArch(process.arch),
        ...flags.nodeLabels,
      },
    },
    spec: {},
    status: {
      capacity: resources.capacityList(),
      allocatable: resources.allocatableList(),
      ...(addresses === undefined ? {} : { addresses }),
      features: { supplementalGroupsPolicy: health.state().features.supplementalGroupsPolicy },
    },
  };
}
