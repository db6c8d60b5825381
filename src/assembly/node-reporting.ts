// What the node tells the cluster about itself: registration, status, lease, CSINode.
import { KUBELET_VERSION } from '../config/version.ts';
import type { EventRecorder } from '../core/events.ts';
import type { Node } from '../core/node.ts';
import type { ApiConnection } from '../kube/connect.ts';
import type { Runnable } from '../lib/supervise.ts';
import { addressesOrNone, parseNodeIps, hostNetworkReader, type HostNetwork } from '../node/addresses.ts';
import { CSI_NOT_READY, CsiNodeInitializer } from '../node/csi-node.ts';
import { readHostFacts } from '../node/host-facts.ts';
import { KnownNode, type NodeWatch } from '../node/known-node.ts';
import { declaredFeatures } from '../node/declared-features.ts';
import { NodeImages } from '../node/node-images.ts';
import { NodeLease } from '../node/lease.ts';
import { NetworkRules } from '../node/network-rules.ts';
import { initialNode, prepared, type NodeFacts, type NodeOptions } from '../node/node-object.ts';
import { NodeStatusReporter } from '../node/node-status.ts';
import { NodeRegistration, type NodeClient } from '../node/registration.ts';
import { readBootMs } from '../host/proc.ts';
import { NodeStartup } from '../stats/node-startup.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export type NodeReportingDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly api: ApiConnection;
  readonly events: EventRecorder;
  readonly nodeWatch: NodeWatch;
  readonly volumesInUse: () => readonly string[];
  readonly onNode: (node: Node) => void;
  readonly pressures: () => readonly string[];
  readonly shuttingDown: () => boolean;
  readonly devicesForgotten: () => boolean;
};

export type NodeReporting = {
  readonly known: KnownNode;
  readonly status: NodeStatusReporter;
  readonly parts: readonly Runnable[];
  /** Reads the facts once, so that the node's addresses are known before any pod asks. */
  prepare(signal: AbortSignal): Promise<void>;
  /** The node as it would be registered, before the API server has it. */
  wouldBe(): Node;
  nodeIps(): readonly string[];
};

export async function buildNodeReporting(deps: NodeReportingDeps): Promise<NodeReporting> {
  const { base, edge, api, events } = deps;
  const { clock, config, nodeName } = base;
  const log = base.log.child({ component: 'node' });
  const options = nodeOptions(base);
  const csi = new CsiNodeInitializer({ client: api.main, clock, log, onReady: () => status.wake() }, { nodeName });
  const host = await readHostFacts();
  const images = new NodeImages({
    list: async (signal) => (await edge.cri.images.listImages({}, signal)).images,
    clock,
    log: base.log,
  });
  const known = new KnownNode(deps.nodeWatch, nodeName);
  const readNetwork = hostNetworkReader(clock, nodeName);
  const wanted = { hostname: nodeName, nodeIps: options.nodeIps, externalCloud: options.externalCloud };
  const addressesOf = (network: HostNetwork): Pick<NodeFacts, 'addresses'> =>
    addressesOrNone(
      (err) => log.error('the addresses of this node are not known', { err }),
      wanted,
      network,
      known.get()?.status?.addresses ?? [],
    );
  let latest: NodeFacts | undefined;
  const facts = async (signal: AbortSignal): Promise<NodeFacts> => {
    const network = await readNetwork(signal);
    const state = edge.health.state();
    latest = {
      host,
      capacity: edge.resources.capacityList(),
      allocatable: edge.resources.allocatableList(),
      ...addressesOf(network),
      runtime: {
        name: edge.version.name,
        version: edge.version.version,
        handlers: state.handlers.map(({ name, ...features }) => ({ name, features })),
        supplementalGroupsPolicy: state.features.supplementalGroupsPolicy,
      },
      images: await images.read(signal),
      pressure: pressureOf(deps.pressures()),
      notReady: [
        ...state.runtimeErrors,
        ...state.networkErrors,
        ...(csi.ready ? [] : [CSI_NOT_READY]),
        ...(deps.shuttingDown() ? ['node is shutting down'] : []),
      ],
      volumesInUse: deps.volumesInUse(),
      declaredFeatures: declaredFeatures(base.gates),
    };
    return latest;
  };
  const resetConnections = (): void => api.transport.resetConnections();
  const startup = new NodeStartup(clock, base.registry, {
    bootMs: await readBootMs(),
    startedMs: performance.timeOrigin,
  });
  const registration = new NodeRegistration(
    {
      client: timedNodes(api.main, startup),
      known,
      facts,
      events,
      clock,
      log,
      devicesForgotten: deps.devicesForgotten,
    },
    options,
  );
  const status = new NodeStatusReporter(
    {
      client: timedNodes(api.heartbeat, startup),
      known,
      ...(config.registerNode ? { registration } : {}),
      facts,
      events,
      clock,
      log,
      listeners: {
        onRepeatedFailure: resetConnections,
        onPodCidr: (podCidr) => void edge.podCidr.set(podCidr, new AbortController().signal),
        onReported: deps.onNode,
      },
    },
    { ...options, updateMs: config.nodeStatusUpdateFrequencyMs, reportMs: config.nodeStatusReportFrequencyMs },
  );
  edge.health.onChange(() => status.wake());
  const lease = new NodeLease(
    { client: api.heartbeat, clock, log, onRepeatedFailure: resetConnections },
    { nodeName, durationSeconds: config.nodeLeaseDurationSeconds },
  );
  const rules = config.makeIPTablesUtilChains ? [new NetworkRules({ clock, log })] : [];
  return {
    known,
    status,
    parts: [csi, status, lease, ...rules],
    prepare: async (signal) => void (await facts(signal)),
    wouldBe: () => initialNode(options, prepared(latest), clock.now()).node,
    nodeIps: () => (latest?.addresses ?? []).filter((a) => a.type === 'InternalIP').map((a) => a.address),
  };
}

const pressureOf = (shown: readonly string[]): NodeFacts['pressure'] => ({
  memory: shown.includes('MemoryPressure'),
  disk: shown.includes('DiskPressure'),
  pid: shown.includes('PIDPressure'),
});

const timedNodes = (client: NodeClient, startup: NodeStartup): NodeClient => ({
  get: (resource, where, signal) => client.get(resource, where, signal),
  create: (resource, where, body, signal) => startup.creating(() => client.create(resource, where, body, signal)),
  patch: async (resource, where, body, signal) => {
    const answer = await client.patch(resource, where, body, signal);
    startup.answered(answer as Node);
    return answer;
  },
});

function nodeOptions({ config, flags, nodeName }: Foundation): NodeOptions {
  return {
    nodeName,
    hostname: nodeName,
    nodeLabels: flags.nodeLabels,
    taints: config.registerWithTaints.map(({ key, value, effect }) => ({
      key,
      effect,
      ...(value === '' ? {} : { value }),
    })),
    registerSchedulable: true,
    providerId: config.providerID,
    externalCloud: flags.cloudProvider === 'external',
    nodeIps: parseNodeIps(flags.nodeIp),
    controllerAttachDetach: config.enableControllerAttachDetach,
    port: config.port,
    maxImages: config.nodeStatusMaxImages,
    kubeletVersion: KUBELET_VERSION,
  };
}
