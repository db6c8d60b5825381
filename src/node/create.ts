// Fits the parts of this folder together: what the node tells the cluster about itself.
import type { Environment } from '../config/environment.ts';
import type { EventRecorder } from '../core/events.ts';
import type { Node } from '../core/node.ts';
import { CRI_VERSION } from '../cri/connection.ts';
import type { CriImages, CriRuntime } from '../cri/services.ts';
import { readHostFacts, readOsImage } from '../host/host-facts.ts';
import { readBootMs } from '../host/proc.ts';
import type { ApiConnection } from '../kube/connect.ts';
import { processStartMs } from '../lib/clock.ts';
import type { Runnable } from '../lib/supervise.ts';
import { hostNetworkReader } from './addresses.ts';
import { CsiNodeInitializer } from './csi-node.ts';
import { declaredFeatures } from './declared-features.ts';
import { InstalledSoftware } from './installed-software.ts';
import { KnownNode, type NodeWatch } from './known-node.ts';
import { NodeLease } from './lease.ts';
import { NetworkRules } from './network-rules.ts';
import { NodeFactsReader, type NodeFactsDeps } from './node-facts.ts';
import { NodeImages } from './node-images.ts';
import { initialNode, prepared, type NodeOptions } from './node-object.ts';
import { nodeOptions } from './node-options.ts';
import { NodeStartup } from './node-startup.ts';
import { NodeStatusReporter } from './node-status.ts';
import { NodeRegistration } from './registration.ts';

export type NodeReportingDeps = Pick<NodeFactsDeps, 'pressures' | 'resources' | 'shuttingDown' | 'volumesInUse'> & {
  readonly api: Pick<ApiConnection, 'main' | 'heartbeat' | 'transport'>;
  readonly nodeWatch: NodeWatch;
  readonly health: NodeFactsDeps['health'] & { onChange(fn: () => void): void };
  readonly images: Pick<CriImages, 'listImages'>;
  readonly runtime: Pick<CriRuntime, 'version'>;
  readonly podCidr: { set(podCidr: string, signal: AbortSignal): Promise<void> };
  readonly events: EventRecorder;
  readonly devicesForgotten: () => boolean;
  /** The API server's answer to a report. */
  readonly onAnswer: (node: Node) => void;
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

export async function createNodeReporting(
  env: Environment,
  deps: NodeReportingDeps,
  runtime: { readonly name: string; readonly version: string },
): Promise<NodeReporting> {
  const { clock, config, nodeName } = env;
  const { api } = deps;
  const log = env.log.child({ component: 'node' });
  const options = nodeOptions(env);
  const known = new KnownNode(deps.nodeWatch, nodeName);
  const csi = new CsiNodeInitializer({ client: api.main, clock, log, onReady: () => status.wake() }, { nodeName });
  const facts = await factsOf(env, deps, { options, known, csi, runtime });
  const status = await statusOf(env, deps, { options, known, facts });
  deps.health.onChange(() => status.wake());
  const onRepeatedFailure = (): void => api.transport.resetConnections();
  const lease = new NodeLease(
    { client: api.heartbeat, clock, log, onRepeatedFailure },
    { nodeName, durationSeconds: config.nodeLeaseDurationSeconds },
  );
  const rules = config.makeIPTablesUtilChains ? [new NetworkRules({ clock, log })] : [];
  return {
    known,
    status,
    parts: [csi, status, lease, ...rules],
    prepare: async (signal) => void (await facts.read(signal)),
    wouldBe: () => initialNode(options, prepared(facts.latest), clock.now()).node,
    nodeIps: () => facts.nodeIps(),
  };
}

async function factsOf(
  { clock, gates, log, nodeName }: Environment,
  deps: NodeReportingDeps,
  made: {
    readonly options: NodeOptions;
    readonly known: KnownNode;
    readonly csi: CsiNodeInitializer;
    readonly runtime: { readonly name: string; readonly version: string };
  },
): Promise<NodeFactsReader> {
  const { nodeIps, externalCloud } = made.options;
  const host = await readHostFacts();
  return new NodeFactsReader(
    {
      ...deps,
      known: made.known,
      csi: made.csi,
      network: hostNetworkReader(clock, nodeName),
      images: new NodeImages({
        list: async (signal) => (await deps.images.listImages({}, signal)).images,
        clock,
        log,
      }),
      software: new InstalledSoftware(
        {
          runtimeVersion: async (signal) =>
            (await deps.runtime.version({ version: CRI_VERSION }, signal)).runtimeVersion,
          osImage: readOsImage,
          clock,
          log,
        },
        { runtimeVersion: made.runtime.version, osImage: host.osImage },
      ),
      log: log.child({ component: 'node' }),
    },
    {
      host,
      addresses: { hostname: nodeName, nodeIps, externalCloud },
      runtime: { name: made.runtime.name },
      declaredFeatures: (runtime) => declaredFeatures(gates, runtime),
    },
  );
}

async function statusOf(
  { clock, config, gates, log: whole, registry }: Environment,
  { api, devicesForgotten, events, onAnswer, podCidr }: NodeReportingDeps,
  made: { readonly options: NodeOptions; readonly known: KnownNode; readonly facts: NodeFactsReader },
): Promise<NodeStatusReporter> {
  const { options, known } = made;
  const log = whole.child({ component: 'node' });
  const startup = new NodeStartup(clock, registry, {
    bootMs: await readBootMs(),
    startedMs: processStartMs(clock),
  });
  const facts = (signal: AbortSignal): ReturnType<NodeFactsReader['read']> => made.facts.read(signal);
  const shared = { known, facts, events, clock, log };
  const getOnExistsOnly = gates.enabled('KubeletRegistrationGetOnExistsOnly');
  const registration = new NodeRegistration(
    { ...shared, client: startup.timed(api.main), devicesForgotten, getOnExistsOnly },
    options,
  );
  return new NodeStatusReporter(
    {
      ...shared,
      client: startup.timed(api.heartbeat),
      ...(config.registerNode ? { registration } : {}),
      listeners: {
        onRepeatedFailure: () => api.transport.resetConnections(),
        onPodCidr: (cidr) => void podCidr.set(cidr, new AbortController().signal),
        onAnswer,
      },
    },
    { ...options, updateMs: config.nodeStatusUpdateFrequencyMs, reportMs: config.nodeStatusReportFrequencyMs },
  );
}
