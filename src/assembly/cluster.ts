// A node in a cluster: one API server connection, what is watched through it, and what is told to it.
import { join } from 'node:path';
import { KUBELET_VERSION } from '../config/version.ts';
import type { KubeObject } from '../core/meta.ts';
import type { PodUid } from '../core/ids.ts';
import type { ConfigMap, Node, RuntimeClass, Secret, Service } from '../core/node.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import { connectApi, type ApiConnection } from '../kube/connect.ts';
import { ApiEventRecorder, type PodStarts } from '../kube/events.ts';
import { ObjectCache } from '../kube/object-cache.ts';
import { openCheckpoint, type PodCheckpoint } from '../kube/pod-checkpoint.ts';
import { PodGuard } from '../kube/pod-guard.ts';
import { PodFeed } from '../kube/pod-feed.ts';
import { configMapsOf, secretsOf } from '../kube/pod-references.ts';
import { PodTokens } from '../kube/pod-tokens.ts';
import { Reflector } from '../kube/reflector.ts';
import { CONFIG_MAPS, NODES, RUNTIME_CLASSES, SECRETS, SERVICE_ACCOUNTS, SERVICES } from '../kube/resources.ts';
import { RuntimeHandlers } from '../kube/runtime-handlers.ts';
import { TokenManager } from '../kube/tokens.ts';
import { knownObjects } from '../kube/trust-bundle-watch.ts';
import type { Runnable } from '../lib/supervise.ts';
import { goArch } from '../node/host-facts.ts';
import { MirrorKeeper } from '../pods/mirror-keeper.ts';
import { MirrorPods } from '../pods/mirror-pods.ts';
import type { PodStore } from '../pods/pod-store.ts';
import { openClientIdentity } from '../security/client-identity.ts';
import { StatusSync } from '../status/status-sync.ts';
import type { StatusStore } from '../status/status-store.ts';
import type { ClusterPort, ObjectChange } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import { buildNodeReporting, type NodeReporting } from './node-reporting.ts';
import { buildPodCertificates, buildTrustBundles } from './pod-credentials.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import { tracedStatuses } from '../trace/traced-ports.ts';

export type ClusterDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly store: PodStore;
  readonly statuses: StatusStore;
  readonly onObjectChange: ObjectChange;
  readonly onPods: (pods: readonly Pod[], origin: 'api' | 'checkpoint') => void;
  readonly mayBeRunning: (uid: PodUid) => boolean;
  /** What the node is short of, as conditions. */
  readonly pressures: () => readonly string[];
  readonly shuttingDown: () => boolean;
  /** No earlier run left a record of devices. */
  readonly devicesForgotten: () => boolean;
  readonly onStatusSynced: (uid: PodUid) => void;
  readonly volumesInUse: () => readonly string[];
  /** Our own Node object changed, or was answered by the server. */
  readonly onNode: (node: Node) => void;
  readonly starts: PodStarts;
  readonly onTrustBundles: () => void;
  readonly onPodCertificates: (uid: string) => void;
};

export type Cluster = ClusterPort & { readonly api: ApiConnection; readonly reporting: NodeReporting };

export async function buildCluster(deps: ClusterDeps, signal: AbortSignal): Promise<Cluster> {
  const { base, store } = deps;
  const { clock, nodeName } = base;
  const log = base.log.child({ component: 'kube' });
  const { api, manager } = await connect(base, signal);
  const events = new ApiEventRecorder(
    { client: api.events, clock, log: base.log.child({ component: 'events' }), starts: deps.starts },
    { nodeName },
  );
  const checkpoint = await checkpointOf(base);
  const watched = watchedObjects(deps, api, checkpoint);
  const reporting = await buildNodeReporting({ ...deps, api, events, nodeWatch: watched.nodes.store });
  const guard = new PodGuard({ log, events });
  const feed = new PodFeed(
    {
      client: api.main,
      clock,
      log,
      ready: (stop) => watched.nodes.whenSynced(stop),
      onPods: (pods, origin) => deps.onPods(guard.check(pods), origin),
      ...(checkpoint === undefined ? {} : { checkpoint }),
    },
    { nodeName },
  );
  const mirrors = new MirrorPods({
    client: api.main,
    mirrorOf: (pod) => store.mirrorOf(pod),
    node: () => reporting.known.get(),
    log,
  });
  const keeper = new MirrorKeeper({ mirrors, desired: store, clock, log });
  const sync = new StatusSync({
    client: tracedStatuses(base.tracer, api.main),
    statuses: deps.statuses,
    watched: feed.reflector.store,
    mayBeRunning: deps.mayBeRunning,
    onSynced: deps.onStatusSynced,
    clock,
    log: base.log.child({ component: 'status-sync' }),
  });
  feed.reflector.subscribe((changes) => sync.apiPodsChanged(changes));
  watched.nodes.subscribe(() => {
    const node = reporting.known.get();
    if (node !== undefined) deps.onNode(node);
    reporting.status.wake();
    keeper.nodeSeen(node);
  });
  watched.nodes.subscribe(() => {
    const node = watched.nodes.store.byName(undefined, nodeName);
    if (node !== undefined) checkpoint?.nodeChanged(node);
  });
  const bundles = buildTrustBundles(deps, api, checkpoint);
  const certificates = buildPodCertificates(
    { ...deps, events },
    { client: api.main, accounts: watched.serviceAccounts, nodeUid: () => reporting.known.get()?.metadata.uid },
  );
  const issued = checkpoint === undefined ? {} : { issued: checkpoint.tokens };
  const tokens = new TokenManager({ client: api.main, clock, log, ...issued });
  const podTokens = new PodTokens({ tokens, accounts: watched.serviceAccounts });
  return {
    api,
    reporting,
    events,
    parts: [
      events,
      ...(manager === undefined ? [] : [manager]),
      watched.nodes,
      watched.services,
      watched.runtimeClasses,
      watched.secrets,
      watched.configMaps,
      ...(bundles === undefined ? [] : [bundles]),
      ...(certificates === undefined ? [] : [certificates]),
      feed,
      ...(checkpoint === undefined ? [] : [checkpoint]),
      tokens,
      sync,
      keeper,
      ...reporting.parts,
    ],
    prepare: (signal) => reporting.prepare(signal),
    sources: ['api'],
    ...(bundles === undefined ? {} : { trustBundles: bundles }),
    ...(certificates === undefined ? {} : { podCertificates: certificates }),
    tokens: podTokens,
    driverToken: (pod, request, signal) => podTokens.token(pod, request, signal),
    configMap: (namespace, name, signal) => watched.configMaps.get(namespace, name, signal),
    secret: (namespace, name, signal) => watched.secrets.get(namespace, name, signal),
    serviceAccountOf: (pod, stop) => podTokens.identityOf(pod, stop),
    services: () => knownObjects(watched.services, checkpoint?.services),
    runtimeHandler: (className, signal) => watched.handlers.handlerOf(className, signal),
    register: (pod) => {
      watched.secrets.register(pod);
      watched.configMaps.register(pod);
    },
    unregister: (pod) => {
      watched.secrets.unregister(uidOf(pod));
      watched.configMaps.unregister(uidOf(pod));
      tokens.forgetPod(uidOf(pod));
      certificates?.forgetPod(uidOf(pod));
    },
    node: () => reporting.known.get() ?? checkpoint?.node ?? reporting.wouldBe(),
    freshNode: (signal) => api.main.get(NODES, { name: nodeName }, signal),
    nodeIps: () => reporting.nodeIps(),
    nodeChanged: () => reporting.status.wake(),
    statusChanged: (uid) => sync.wake(uid),
    podsRead: (signal) => feed.reflector.whenSynced(signal),
    mirrorStatus: (pod) =>
      mirrors.statusOf(pod, feed.reflector.store.byName(pod.metadata.namespace, pod.metadata.name)),
    keepMirror: (pod) => keeper.keep(pod),
    removeMirror: async (mirror, signal) => void (await mirrors.delete(mirror, signal)),
  };
}

const checkpointOf = ({ clock, log, flags, nodeName }: Foundation): Promise<PodCheckpoint | undefined> =>
  openCheckpoint(
    flags.podCheckpoint,
    { clock, log: log.child({ component: 'checkpoint' }) },
    { dir: join(flags.rootDir, 'last_known'), nodeName },
  );

/** The connection, with the client identity that goes with it (and its rotation, where that is asked for). */
async function connect(
  base: Foundation,
  signal: AbortSignal,
): Promise<{ api: ApiConnection; manager: Runnable | undefined }> {
  const { clock, config, flags, nodeName, registry } = base;
  const log = base.log.child({ component: 'kube' });
  const settings = {
    version: KUBELET_VERSION,
    architecture: goArch(process.arch),
    qps: config.kubeAPIQPS,
    burst: config.kubeAPIBurst,
    eventQps: config.eventRecordQPS,
    eventBurst: config.eventBurst,
    leaseDurationSeconds: config.nodeLeaseDurationSeconds,
  };
  const identity = await openClientIdentity(
    {
      clock,
      log,
      connect: (access, credentials) =>
        connectApi({ clock, log, ...(credentials === undefined ? {} : { credentials }) }, access, settings).main,
    },
    {
      kubeconfig: flags.kubeconfig,
      bootstrapKubeconfig: flags.bootstrapKubeconfig,
      certDir: flags.certDir,
      nodeName,
      rotate: config.rotateCertificates,
    },
    signal,
  );
  const api = connectApi(
    { clock, log, metrics: registry, credentials: identity.credentials },
    identity.access,
    settings,
  );
  return { api, manager: identity.manager };
}

type Watched = {
  readonly nodes: Reflector<Node>;
  readonly services: Reflector<Service>;
  readonly runtimeClasses: Reflector<RuntimeClass>;
  readonly handlers: RuntimeHandlers;
  readonly secrets: ObjectCache<Secret>;
  readonly configMaps: ObjectCache<ConfigMap>;
  readonly serviceAccounts: ObjectCache<KubeObject>;
};

function watchedObjects(
  { base, onObjectChange }: ClusterDeps,
  api: ApiConnection,
  checkpoint: PodCheckpoint | undefined,
): Watched {
  const { clock, nodeName } = base;
  const log = base.log.child({ component: 'kube' });
  const client = api.main;
  const nodes = new Reflector<Node>(
    { client, clock, log },
    { name: 'node-watch', resource: NODES, fieldSelector: `metadata.name=${nodeName}` },
  );
  const services = new Reflector<Service>(
    { client, clock, log },
    { name: 'service-watch', resource: SERVICES, fieldSelector: 'spec.clusterIP!=None' },
  );
  const runtimeClasses = new Reflector<RuntimeClass>(
    { client, clock, log },
    { name: 'runtime-class-watch', resource: RUNTIME_CLASSES },
  );
  services.subscribe(() => checkpoint?.servicesChanged(services.store.values()));
  const handlers = new RuntimeHandlers({ classes: runtimeClasses, lastKnown: checkpoint?.runtimeClasses, clock });
  return {
    nodes,
    services,
    runtimeClasses,
    handlers,
    ...objectCaches(base, api.objects, onObjectChange, checkpoint),
  };
}

function objectCaches(
  base: Foundation,
  client: ApiConnection['objects'],
  onObjectChange: ObjectChange,
  checkpoint: PodCheckpoint | undefined,
): Pick<Watched, 'secrets' | 'configMaps' | 'serviceAccounts'> {
  const deps = { client, clock: base.clock, log: base.log.child({ component: 'kube' }) };
  const strategy = base.config.configMapAndSecretChangeDetectionStrategy;
  const secrets = new ObjectCache<Secret>(
    {
      ...deps,
      onChange: ({ namespace, name }) => onObjectChange('secret', namespace, name),
      ...(checkpoint === undefined ? {} : { lastKnown: checkpoint.secrets }),
    },
    { name: 'secret-cache', resource: SECRETS, strategy, namesOf: secretsOf },
  );
  const configMaps = new ObjectCache<ConfigMap>(
    {
      ...deps,
      onChange: ({ namespace, name }) => onObjectChange('configMap', namespace, name),
      ...(checkpoint === undefined ? {} : { lastKnown: checkpoint.configMaps }),
    },
    { name: 'config-map-cache', resource: CONFIG_MAPS, strategy, namesOf: configMapsOf },
  );
  const serviceAccounts = new ObjectCache<KubeObject>(
    {
      ...deps,
      onChange: () => undefined,
      ...(checkpoint === undefined ? {} : { lastKnown: checkpoint.serviceAccounts }),
    },
    { name: 'service-account-reads', resource: SERVICE_ACCOUNTS, strategy: 'Get', namesOf: () => new Set() },
  );
  return { secrets, configMaps, serviceAccounts };
}
