// The composition root: builds the parts in start order, fits them together and runs them until told to stop.
import { buildAdmission } from './assembly/admission.ts';
import { buildCluster } from './assembly/cluster.ts';
import type { ClusterPort } from './assembly/cluster-port.ts';
import { buildContainerManagers } from './assembly/container-managers.ts';
import { buildDeviceManagers } from './assembly/device-managers.ts';
import { buildEviction } from './assembly/eviction.ts';
import { buildExplainer } from './assembly/explainer.ts';
import { buildFoundation, type Foundation } from './assembly/foundation.ts';
import { buildImages } from './assembly/images.ts';
import { buildPodsFeed } from './assembly/local-apis.ts';
import { buildPlugins } from './assembly/plugins.ts';
import { buildPodLife, type PodLife } from './assembly/pod-life.ts';
import { buildPodRuntime } from './assembly/pod-runtime.ts';
import { buildCgroupTree, buildPodCgroups } from './assembly/pod-cgroups.ts';
import { buildProbes } from './assembly/probes.ts';
import { buildResizing } from './assembly/resizing.ts';
import { buildRuntimeEdge, type RuntimeEdge } from './assembly/runtime-edge.ts';
import { buildServer } from './assembly/server.ts';
import { buildShutdown } from './assembly/shutdown.ts';
import { buildSources, type Sources } from './assembly/sources.ts';
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
import { readMachineTopology } from './host/topology/read.ts';
import { aborted, childScope } from './lib/abort.ts';
import type { Clock } from './lib/clock.ts';
import type { Logger } from './lib/logger.ts';
import { supervise, type Runnable } from './lib/supervise.ts';
import { fileTail } from './host/mounts/file-tail.ts';
import { lastLines } from './logs/last-lines.ts';
import { PodStore } from './pods/pod-store.ts';
import { waitForPods } from './pods/run-once.ts';
import { mayHaveRunningContainers } from './pods/worker-state.ts';
import type { CgroupTree } from './resources/cgroup-tree.ts';
import { ContainerManagerHooks } from './resources/container-manager-hook.ts';
import type { PodsFeed } from './server/pods-feed.ts';
import { LocalObjectStore } from './sources/local-objects.ts';
import { PodMetrics } from './pods/pod-metrics.ts';
import { StatusStore } from './status/status-store.ts';
import { TerminationMessages } from './status/termination-messages.ts';

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
};

const CGROUP_V1_WARNING =
  'cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. Please migrate to cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1';

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
    logTail: (path) => lastLines(path, signal),
    fileTail: (path, maxBytes) => tail(path, maxBytes, signal),
  });
}

async function buildNode(
  base: Foundation,
  edge: RuntimeEdge,
  options: KubeletOptions,
  signal: AbortSignal,
): Promise<NodeParts> {
  const { clock, log } = base;
  const store = new PodStore();
  const podMetrics = new PodMetrics(clock, base.registry);
  const objects = new LocalObjectStore();
  const feed = buildPodsFeed(base, store, () => statuses);
  const statuses: StatusStore = buildStatuses(base, podMetrics, feed, () => cluster);
  const made = { store, statuses, objects, podMetrics };
  const condition = { pressures: () => eviction.pressures(), shuttingDown: () => shutdown.shuttingDown() };
  const late: Late = {
    ...made,
    ...condition,
    volumes: () => volumes,
    life: () => life,
    sources: () => sources,
    devicesForgotten: () => devices.devices.isForgotten,
  };
  const cluster: ClusterPort = await buildClusterPort(base, edge, late, signal);
  const active = (): readonly Pod[] => life.changes.active();
  const volumes = buildVolumes(base, cluster, edge.resources, statuses);
  const images = await buildImages(base, edge.cri, cluster, statuses.setWaitingMessage.bind(statuses), signal);
  const wake = (uid: PodUid): void => life.workers.wake(uid);
  const sourcesReady = (): boolean => sources.merged.sourcesReady();
  const unfinished = (): readonly Pod[] => life.changes.unfinished();
  const nodeChanged = (): void => cluster.nodeChanged();
  const machine = await readMachineTopology();
  const sharedDeps = { cluster, machine, alive: unfinished, sourcesReady, wake, nodeChanged };
  const devices = await buildDeviceManagers(base, edge, sharedDeps);
  const providers = [devices.devices];
  const managers = await buildContainerManagers({ base, edge, machine, providers, holders: unfinished, sourcesReady });
  const hooks = new ContainerManagerHooks([...devices.hooks, managers.hook]);
  const cgroups = buildPodCgroups(base, edge, hooks);
  const resizing = await buildResizing({ base, edge, cluster, cgroups, active, wake });
  const { claims } = devices;
  const runtimeDeps = { cluster, volumes, images, cgroups, hooks, claims, resize: resizing.records, podMetrics };
  const { runtime, userns } = await buildPodRuntime(base, edge, runtimeDeps, signal);
  const probes = buildProbes(base, edge, { cluster, store, statuses, probed: (uid) => life.probed(uid) });
  const admission = await buildAdmission(base, edge, {
    cluster,
    hooks,
    workers: () => life.workers,
    ...condition,
    allocatedDevices: (pod) => devices.devices.allocatedTo(pod),
  });
  const life: PodLife = buildPodLife({
    base,
    edge,
    cluster,
    volumes,
    images,
    cgroups,
    runtime,
    userns,
    probes,
    statuses,
    store,
    messages: terminationMessages(base, volumes, signal),
    admission,
    sourcesReady,
    tiers: () => tree,
    deviceHealth: devices.health,
    claims,
    collector: () => upkeep.collector,
    resizing,
    podMetrics,
  });
  const upkeep = await buildUpkeep({ base, edge, cluster, images, hooks, store, life: () => life, sourcesReady });
  const sources: Sources = buildSources(base, cluster, {
    ...(base.flags.kubeconfig === '' ? { objects } : {}),
    observed: edge.observer.cache,
    onChange: (change) => {
      podMetrics.changed(change.op, change.pods);
      void life.changes.handle(change);
      feed?.allChanged(change.pods);
      // With the last source heard, whatever nobody named is an orphan.
      if (sourcesReady() && !life.housekeeping.synced) life.housekeeping.wake();
    },
  });
  const stats = await buildStats({ base, edge, volumes, store, statuses, life });
  const eviction = buildEviction({ base, edge, cluster, active, life, volumes, upkeep, stats: stats.provider });
  const shutdown = buildShutdown({ base, cluster, active, life, volumes });
  const assigned = { ...devices.assigned, cpus: managers.cpu, memory: managers.memory };
  const explainer = buildExplainer({ base, edge, cluster, store, statuses, life, volumes, images, probes });
  const known = { base, edge, cluster, store, statuses, sources, active, assigned, explainer };
  const server = await buildServer({ ...known, feed, process: options, statistics: stats.statistics });
  const tree = buildCgroupTree(base, edge, { cluster, active });
  const plugins = buildPlugins(base, [...volumes.handlers, ...devices.pluginHandlers]);
  const statusOf = (uid: PodUid): ReturnType<StatusStore['statusOf']> => statuses.statusOf(uid);
  const afterRelist = [...life.parts, ...resizing.parts, ...upkeep.parts, eviction, ...sources.parts, ...devices.parts];
  const parts = [
    ...cluster.parts,
    edge.observer,
    edge.health,
    tree,
    images.meter,
    ...volumes.parts,
    plugins,
    probes,
    ...stats.parts,
    ...shutdown.parts,
    ...server.parts,
  ];
  return {
    prepare: (stop) => prepareNode(edge, { cluster, tree, volumes }, stop),
    allStarted: (stop) => waitForPods({ sourcesReady, pods: () => store.all(), statusOf, clock, log }, stop),
    run: (ready, stop) =>
      supervise([...parts, pods(base, edge, [...managers.parts, ...afterRelist], ready)], base, stop),
  };
}

function buildStatuses(
  base: Foundation,
  podMetrics: PodMetrics,
  feed: PodsFeed | undefined,
  cluster: () => ClusterPort,
): StatusStore {
  const statuses = new StatusStore({
    clock: base.clock,
    log: base.log.child({ component: 'status' }),
    onChange: (uid) => {
      cluster().statusChanged(uid);
      podMetrics.statusChanged(statuses.get(uid));
      feed?.changed(uid);
      base.memory.touch();
      if (base.flags.kubeconfig === '' && isPodReady(statuses.get(uid) ?? {})) base.tracer.finish('start', uid);
    },
    shown: (pod) => cluster().mirrorStatus(pod),
  });
  return statuses;
}

/** What is done before the first part runs. */
async function prepareNode(
  edge: RuntimeEdge,
  { cluster, tree, volumes }: { cluster: ClusterPort; tree: CgroupTree; volumes: Volumes },
  signal: AbortSignal,
): Promise<void> {
  cluster.events.node('Normal', 'Starting', 'Starting kubelet.');
  if (edge.cgroups.version === 1) cluster.events.node('Warning', 'CgroupV1', CGROUP_V1_WARNING);
  await Promise.all([tree.setUp(signal), volumes.manager.reconstruct(signal), edge.health.check(signal)]);
  await cluster.prepare(signal);
}

type Late = {
  readonly store: PodStore;
  readonly podMetrics: PodMetrics;
  readonly statuses: StatusStore;
  readonly pressures: () => readonly string[];
  readonly shuttingDown: () => boolean;
  readonly devicesForgotten: () => boolean;
  readonly objects: LocalObjectStore;
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
      starts: { crowded: () => late.life().crowded(), quiet: (stop) => late.life().quiet(stop) },
      onPodCertificates: (uid) => late.volumes().manager.podCertificatesChanged(uid),
      onTrustBundles: () => late.volumes().manager.trustBundlesChanged(),
      mayBeRunning: (uid) =>
        mayHaveRunningContainers(late.life().workers.stateOf(uid), late.life().housekeeping.synced),
      volumesInUse: () => late.volumes().manager.volumesInUse(),
      onNode: (node) => late.volumes().nodeSeen(node),
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
