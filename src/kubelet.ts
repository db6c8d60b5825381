// The composition root: builds the parts in start order, fits them together and runs them until told to stop.
import type { PodAdmission } from './admission/pod-admission.ts';
import { buildAdmission } from './assembly/admission.ts';
import { buildCluster } from './assembly/cluster.ts';
import type { ClusterPort } from './assembly/cluster-port.ts';
import { buildEviction } from './assembly/eviction.ts';
import { buildExplainer } from './assembly/explainer.ts';
import { buildFoundation, type Foundation } from './assembly/foundation.ts';
import { createPlugins } from './plugins/create.ts';
import { buildManagers } from './assembly/managers.ts';
import { buildPage } from './assembly/page.ts';
import { buildPodLife } from './assembly/pod-life.ts';
import { buildPodRuntime } from './assembly/pod-runtime.ts';
import { buildResizing } from './assembly/resizing.ts';
import { buildRuntimeEdge, type RuntimeEdge } from './assembly/runtime-edge.ts';
import { buildServer } from './assembly/server.ts';
import { createSources, type Sources } from './sources/create.ts';
import { buildStats } from './assembly/stats.ts';
import { buildStandalone } from './assembly/standalone.ts';
import { isPodReady } from './trace/traced-ports.ts';
import { buildUpkeep } from './assembly/upkeep.ts';
import { buildVolumes, type Volumes } from './assembly/volumes.ts';
import type { KubeletConfig } from './config/config-fields.ts';
import type { FeatureGates } from './config/feature-gates.ts';
import type { KubeletFlags } from './config/flags.ts';
import type { ConfigUpdates } from './config/updates.ts';
import type { PodUid } from './core/ids.ts';
import type { Pod } from './core/pod.ts';
import type { LogLevels } from './host/process/log-levels.ts';
import type { LogOutput } from './host/process/log-output.ts';
import type { Systemd } from './host/process/sd-notify.ts';
import { Watchdog } from './host/process/watchdog.ts';
import { aborted, childScope } from './lib/abort.ts';
import type { Clock } from './lib/clock.ts';
import type { Logger } from './lib/logger.ts';
import { supervise, type Runnable } from './lib/supervise.ts';
import { fileTail } from './host/mounts/file-tail.ts';
import { memoryMaySwap } from './host/mounts/noswap.ts';
import { createImages } from './images/create.ts';
import { lastLines } from './logs/last-lines.ts';
import type { PodLife } from './pods/create.ts';
import { PodStore } from './pods/pod-store.ts';
import { waitForPods } from './pods/run-once.ts';
import { createProbes } from './probes/create.ts';
import { createCgroupTree } from './resources/create.ts';
import { createSystemCgroups } from './resources/system-cgroups.ts';
import type { CgroupTree } from './resources/cgroup-tree.ts';
import type { PodChange } from './sources/merge.ts';
import { LocalObjectStore } from './sources/local-objects.ts';
import { createPodsFeed } from './server/local-apis.ts';
import type { PodsFeed } from './server/pods-feed.ts';
import { createShutdown } from './shutdown/create.ts';
import { PodMetrics } from './pods/pod-metrics.ts';
import { StatusStore } from './status/status-store.ts';
import { TerminationMessages } from './status/termination-messages.ts';
import type { NotReadyConditions } from './why/not-ready.ts';

export type KubeletOptions = {
  readonly config: KubeletConfig;
  readonly flags: KubeletFlags;
  /** Every flag as /flagz shows it. */
  readonly flagValues: ReadonlyMap<string, string>;
  readonly gates: FeatureGates;
  readonly log: Logger;
  readonly logLevels: LogLevels;
  readonly logOutput: LogOutput;
  readonly clock: Clock;
  readonly systemd: Systemd;
  readonly updates: ConfigUpdates;
  /** What the health port, which is there already, has told. */
  readonly localHealth: { readonly pings: number };
};

const CGROUP_V1_WARNING =
  'cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. Please migrate to cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1';

const SWAP_WARNING =
  'The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might be swapped to disk and should no longer be considered secure.';

export async function runKubelet(options: KubeletOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, systemd } = options;
  const base = buildFoundation(options);
  const parts: Runnable[] = [{ name: 'until-stopped', run: (stop) => aborted(stop) }];
  if (systemd.watchdogMs !== undefined)
    parts.push(
      new Watchdog(
        { systemd, clock, log, failing: () => base.health.find((c) => c.failing() !== undefined)?.name },
        { intervalMs: systemd.watchdogMs },
      ),
    );
  if (base.config.runOnce) return runNode(base, options, signal);
  parts.push(base.memory);
  if (base.traceExport !== undefined) parts.push(base.traceExport);
  parts.push({ name: 'node', run: (stop) => runNode(base, options, stop) });
  await supervise(parts, base, signal);
}

/** Everything that needs the container runtime. */
async function runNode(base: Foundation, options: KubeletOptions, signal: AbortSignal): Promise<void> {
  const edge = await buildRuntimeEdge(base, signal);
  try {
    const node = await buildNode(base, edge, options, signal);
    await node.prepare(signal);
    const ready = (): void => options.systemd.notify('READY=1');
    await (base.config.runOnce ? runOnce(node, ready, signal) : node.run(ready, signal));
  } finally {
    edge.cri.close();
  }
}

/** The parts run just until every pod of the local sources was seen running. */
async function runOnce(node: NodeParts, ready: () => void, signal: AbortSignal): Promise<void> {
  const scope = childScope(signal);
  const running = node.run(ready, scope.signal);
  running.catch((err: unknown) => scope.abort(err));
  try {
    await node.allStarted(scope.signal);
  } finally {
    scope.abort();
    scope.release();
    await running;
  }
}

type NodeParts = {
  prepare(signal: AbortSignal): Promise<void>;
  allStarted(signal: AbortSignal): Promise<void>;
  run(onReady: () => void, signal: AbortSignal): Promise<void>;
};

function terminationMessages(
  { clock, flags }: Foundation,
  { mounter }: Volumes,
  signal: AbortSignal,
): TerminationMessages {
  const tail = fileTail({ clock, mounter }, { rootDir: flags.rootDir });
  return new TerminationMessages({
    logTail: (path) => lastLines(clock, path, signal),
    fileTail: (path, maxBytes) => tail(path, maxBytes, signal),
  });
}

async function buildNode(
  base: Foundation,
  edge: RuntimeEdge,
  options: KubeletOptions,
  signal: AbortSignal,
): Promise<NodeParts> {
  const made = buildStores(base, { cluster: () => cluster, notReady: () => notReady });
  const { store, statuses, objects, podMetrics, feed } = made;
  const condition = { pressures: () => eviction.pressures(), shuttingDown: () => shutdown.shuttingDown() };
  const late: Late = {
    ...made,
    ...condition,
    volumes: () => volumes,
    life: () => life,
    sources: () => sources,
    devicesForgotten: () => managers.devices.isForgotten,
  };
  const cluster: ClusterPort = await buildClusterPort(base, edge, late, signal);
  const active = (): readonly Pod[] => life.changes.active();
  const volumes = buildVolumes(base, cluster, edge.resources, statuses);
  const { events, objects: podObjects } = cluster;
  const onWaiting = statuses.setWaitingMessage.bind(statuses);
  const images = await createImages(base, { cri: edge.cri, events, tokens: podObjects.tokens, onWaiting }, signal);
  const wake = (uid: PodUid): void => life.workers.wake(uid);
  const sourcesReady = (): boolean => sources.merged.sourcesReady();
  const nodeChanged = (): void => cluster.nodeChanged();
  const sharedDeps = { cluster, alive: () => life.changes.unfinished(), sourcesReady, wake, nodeChanged };
  const managers = await buildManagers(base, edge, sharedDeps);
  const judging = { ...condition, sourcesReady, admission: (): PodAdmission => admission };
  const resizing = await buildResizing({ base, edge, cluster, cgroups: managers.cgroups, active, wake, ...judging });
  const runtimeDeps = { cluster, volumes, images, managers, resize: resizing.records, podMetrics };
  const { runtime, userns } = await buildPodRuntime(base, edge, runtimeDeps, signal);
  const probes = createProbes(base, {
    runtime: edge.cri.runtime,
    desired: store,
    statuses,
    observed: edge.observer.cache,
    events,
    probeRegistry: base.probeRegistry,
    probed: (uid) => life.probed(uid),
  });
  const admission = await buildAdmission(base, edge, {
    cluster,
    hooks: managers.hooks,
    lifecycles: () => life.lifecycles,
    ...condition,
    allocatedDevices: (pod) => managers.devices.allocatedTo(pod),
  });
  const messages = terminationMessages(base, volumes, signal);
  const known = { base, edge, cluster, store, statuses, feed, volumes, images, managers, podMetrics, sourcesReady };
  const upkeep = await buildUpkeep({
    ...known,
    records: [statuses, messages, probes, base.tracer, resizing.pods, userns],
    life: () => life,
  });
  const life: PodLife = buildPodLife({
    ...known,
    runtime,
    probes,
    messages,
    admission,
    tiers: () => tree,
    leftovers: upkeep.leftovers,
    kept: () => sources.kept,
    resizing,
  });
  edge.observer.cache.onChange((uid, events) => upkeep.pruner.observed(uid, events));
  const sourcesDeps = {
    ...(base.flags.kubeconfig === '' ? { objects } : {}),
    events,
    observed: edge.observer.cache,
    onChange: (change: PodChange) => {
      life.changed(change);
      stats.podsChanged();
      feed?.allChanged(change.pods);
    },
  };
  const sources: Sources = createSources(base, sourcesDeps, cluster.sources);
  const stats = await buildStats({ ...known, life });
  const { lifecycles, changes } = life;
  const eviction = await buildEviction({ ...known, active, resizing, lifecycles, upkeep, stats: stats.provider });
  const ending = { known: sourcesReady, running: () => changes.running(), end: lifecycles.end.bind(lifecycles) };
  const shutdown = createShutdown(base, { pods: ending, events, onChange: nodeChanged }, base.systemBus);
  const { explainer, notReady } = buildExplainer({ ...known, life, probes });
  const seen = { ...known, life, upkeep, sources, probes, stats, eviction, explainer };
  const page = await buildPage({ ...seen, podRuntime: runtime });
  const server = await buildServer({ ...seen, active, page, process: options, stats: stats.provider });
  const tree = createCgroupTree(base, edge, { pods: { active }, events });
  const plugins = createPlugins(base, [...volumes.handlers, ...managers.pluginHandlers]);
  const statusOf = statuses.statusOf.bind(statuses);
  const afterRelist = [
    ...managers.parts,
    ...life.parts,
    ...resizing.parts,
    ...upkeep.parts,
    eviction,
    ...sources.parts,
  ];
  const parts = [
    ...cluster.parts,
    edge.observer,
    edge.health,
    tree,
    ...(await createSystemCgroups(base)),
    images.meter,
    ...volumes.parts,
    plugins,
    probes,
    ...stats.parts,
    ...shutdown.parts,
    base.records.timeline,
    notReady,
    ...server,
  ];
  return {
    prepare: (stop) => prepareNode(base.flags, edge, { cluster, tree, volumes }, stop),
    allStarted: (stop) => waitForPods({ ...base, sourcesReady, pods: () => store.all(), statusOf }, stop),
    run: (ready, stop) => supervise([...parts, pods(base, edge, afterRelist, ready)], base, stop),
  };
}

type Stores = {
  readonly store: PodStore;
  readonly statuses: StatusStore;
  readonly objects: LocalObjectStore;
  readonly podMetrics: PodMetrics;
  readonly feed: PodsFeed | undefined;
};

/** What is desired and what is said of it, with whoever wants to hear of a change. */
function buildStores(
  base: Foundation,
  { cluster, notReady }: { cluster: () => ClusterPort; notReady: () => NotReadyConditions },
): Stores {
  const { clock, log, memory, records, registry } = base;
  const store = new PodStore();
  const podMetrics = new PodMetrics(clock, registry);
  const feed = createPodsFeed(base, { pods: store, statuses: { get: (uid) => statuses.get(uid) } });
  const statuses: StatusStore = new StatusStore({
    clock,
    log: log.child({ component: 'status' }),
    onChange: (uid) => {
      cluster().statusChanged(uid);
      podMetrics.statusChanged(statuses.get(uid));
      records.touches.touch(uid);
      notReady().statusChanged(uid);
      feed?.changed(uid);
      memory.touch();
      if (base.flags.kubeconfig === '' && isPodReady(statuses.get(uid) ?? {})) base.tracer.finish('start', uid);
    },
    shown: (pod) => cluster().mirrorStatus(pod),
    explains: base.flags.notReadyCondition,
  });
  return { store, statuses, objects: new LocalObjectStore(), podMetrics, feed };
}

/** What is done before the first part runs. */
async function prepareNode(
  { rootDir }: Pick<KubeletFlags, 'rootDir'>,
  edge: RuntimeEdge,
  { cluster, tree, volumes }: { cluster: ClusterPort; tree: CgroupTree; volumes: Volumes },
  signal: AbortSignal,
): Promise<void> {
  cluster.events.node('Normal', 'Starting', 'Starting kubelet.');
  if (edge.cgroups.version === 1) cluster.events.node('Warning', 'CgroupV1', CGROUP_V1_WARNING);
  if (await memoryMaySwap(edge.resources.machine, rootDir))
    cluster.events.node('Warning', 'PossibleMemoryBackedVolumesOnDisk', SWAP_WARNING);
  await Promise.all([tree.setUp(signal), volumes.manager.reconstruct(signal), edge.health.check(signal)]);
  await cluster.prepare(signal);
}

type Late = Stores & {
  readonly pressures: () => readonly string[];
  readonly shuttingDown: () => boolean;
  readonly devicesForgotten: () => boolean;
  readonly volumes: () => Volumes;
  readonly life: () => PodLife;
  readonly sources: () => Sources;
};

/** With a kubeconfig the node belongs to a cluster, without one it is on its own. */
function buildClusterPort(base: Foundation, edge: RuntimeEdge, late: Late, signal: AbortSignal): Promise<ClusterPort> {
  const onObjectChange = (kind: 'configMap' | 'secret', namespace: string, name: string): void =>
    late.volumes().manager.objectChanged(kind, namespace, name);
  if (base.flags.kubeconfig === '') return buildStandalone(base, edge, late.objects, onObjectChange);
  return buildCluster(
    {
      base,
      edge,
      store: late.store,
      statuses: late.statuses,
      onObjectChange,
      pressures: late.pressures,
      shuttingDown: late.shuttingDown,
      devicesForgotten: late.devicesForgotten,
      onPods: (pods, origin) => late.sources().merged.set('api', pods, origin === 'checkpoint'),
      onPod: (uid, pod) => late.sources().merged.change('api', uid, pod),
      starts: { crowded: () => late.life().crowded(), quiet: (stop) => late.life().quiet(stop) },
      onPodCertificates: (uid) => late.volumes().manager.podCertificatesChanged(uid),
      onTrustBundles: () => late.volumes().manager.trustBundlesChanged(),
      mayBeRunning: (uid) => late.life().lifecycles.mayBeRunning(uid),
      volumesInUse: () => late.volumes().manager.reportVolumesInUse(),
      onNode: (node) => late.volumes().nodeSeen(node),
      onAnswer: (node) => late.volumes().reportAnswered(node),
      onStatusSynced: (uid) => late.podMetrics.statusSynced(uid),
    },
    signal,
  );
}

/** Nothing is decided about pods before the runtime has been read once. */
const pods = (base: Foundation, edge: RuntimeEdge, parts: readonly Runnable[], onReady: () => void): Runnable => ({
  name: 'pods',
  run: async (signal) => {
    await edge.observer.cache.whenReady(signal);
    onReady();
    await supervise(parts, base, signal);
  },
});
