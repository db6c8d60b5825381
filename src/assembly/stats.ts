// Statistics: what node, pods and containers use, for the server's summary and metrics pages and for eviction.
import { KUBELET_VERSION } from '../config/version.ts';
import { detectCgroups } from '../host/cgroups/layout.ts';
import { CgroupStatisticsReader } from '../host/cgroups/statistics-reader.ts';
import { readTopology } from '../host/proc.ts';
import type { Runnable } from '../lib/supervise.ts';
import { goArch, readHostFacts } from '../node/host-facts.ts';
import type { PodStore } from '../pods/pod-store.ts';
import { cgroupPath, kubepodsName, parseCgroupName, podUidOfDir, qosName } from '../resources/cgroup-names.ts';
import type { MachineReading } from '../stats/cadvisor-metrics.ts';
import { takeCensus, type CgroupPlaces } from '../stats/census.ts';
import { CgroupReadings } from '../stats/cgroup-readings.ts';
import { ContainerReadings } from '../stats/container-readings.ts';
import { CpuRates } from '../stats/cpu-rates.ts';
import { CpuSampling } from '../stats/cpu-sampling.ts';
import { readDisks } from '../stats/filesystems.ts';
import { HostReadings } from '../stats/host-readings.ts';
import { registerKubeletMetrics } from '../stats/kubelet-metrics.ts';
import { NodeReadings } from '../stats/node-readings.ts';
import { PodReadings } from '../stats/pod-readings.ts';
import { registerProcessMetrics, registerProcessStart } from '../stats/process-metrics.ts';
import { SandboxImages } from '../stats/sandbox-images.ts';
import { StatsProvider } from '../stats/stats-provider.ts';
import { VolumeMeasuring } from '../stats/volume-figures.ts';
import type { StatusStore } from '../status/status-store.ts';
import type { Foundation } from './foundation.ts';
import type { PodLife } from './pod-life.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import type { Statistics } from './server.ts';
import type { Volumes } from './volumes.ts';

export type Stats = {
  readonly provider: StatsProvider;
  readonly volumes: VolumeMeasuring;
  /** In the shape the server asks for. */
  readonly statistics: Statistics;
  readonly parts: readonly Runnable[];
};

export type StatsDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly volumes: Volumes;
  readonly store: PodStore;
  readonly statuses: StatusStore;
  readonly life: PodLife;
};

/** Mounts of containers are no filesystems of the machine. */
const RUNTIME_DIRS = ['/run/containerd', '/var/lib/containerd', '/var/lib/containers', '/run/containers', '/run/netns'];

export async function buildStats(deps: StatsDeps): Promise<Stats> {
  const { base, edge, store } = deps;
  const { clock, config, flags, registry } = base;
  const log = base.log.child({ component: 'stats' });
  const source = new CgroupStatisticsReader(await detectCgroups());
  const places = placesOf(base, edge);
  const rates = new CpuRates();
  const cgroups = new CgroupReadings(source, rates, clock);
  const host = new HostReadings(clock);
  const psi = base.gates.enabled('KubeletPSI');
  const volumes = new VolumeMeasuring(
    {
      pods: () => store.all(),
      measure: (uids, signal) => deps.volumes.manager.statsOf(uids, signal),
      durations: registry.histogram(
        'kubelet_volume_metric_collection_duration_seconds',
        '[ALPHA] Duration in seconds to calculate volume stats',
        ['metric_source'],
      ),
      clock,
      log,
    },
    { periodMs: config.volumeStatsAggPeriodMs },
  );
  const node = new NodeReadings(
    { cgroups, births: source, host, imageFs: (signal) => edge.cri.images.imageFsInfo({}, signal), clock },
    { nodeName: base.nodeName, rootDir: flags.rootDir, places, psi, startedMs: performance.timeOrigin },
  );
  const sandboxImages = new SandboxImages(clock, edge.cri.runtime);
  const containers = new ContainerReadings(
    {
      cgroups,
      source,
      root: (signal) => node.root('full', signal),
      bootMs: () => host.bootMs(),
      interfaces: (pid) => host.interfaces(pid),
      sandboxImage: (id, signal) => sandboxImages.of(id, signal),
    },
    { places, runtimeName: edge.version.name },
  );
  const provider = new StatsProvider({
    node,
    pods: new PodReadings(
      { cgroups, processes: source, disk: host, volumesOf: (uid) => volumes.of(uid), clock },
      { rootDir: flags.rootDir, podLogsDir: config.podLogsDir, psi },
    ),
    containers,
    sources: {
      snapshots: () => edge.observer.cache.all(),
      census: () => takeCensus(source, places),
      containerStats: async (signal) => (await edge.cri.runtime.listContainerStats({ filter: {} }, signal)).stats,
      disks: () => readDisks((path) => host.filesystem(path), [flags.rootDir, ...RUNTIME_DIRS]),
      machine: () => readMachineReading(host),
    },
    clock,
    log,
  });
  registerMetrics(deps, provider);
  const sampling = new CpuSampling({ cgroups: source, places, rates, clock, log });
  return { provider, volumes, statistics: statisticsOf(base, provider), parts: [sampling, volumes] };
}

function placesOf({ config, flags }: Foundation, { cgroupDriver }: RuntimeEdge): CgroupPlaces {
  const root = parseCgroupName(config.cgroupRoot || '/', cgroupDriver);
  const pods = cgroupPath(kubepodsName(root), cgroupDriver);
  const system = [
    { name: 'kubelet', path: config.kubeletCgroups },
    { name: 'runtime', path: flags.runtimeCgroups },
    { name: 'misc', path: config.systemCgroups },
  ] as const;
  return {
    pods,
    tiers: [pods, ...(['Burstable', 'BestEffort'] as const).map((qos) => cgroupPath(qosName(root, qos), cgroupDriver))],
    podUidOf: (dir) => podUidOfDir(dir, cgroupDriver),
    system: system.filter(({ path }) => path !== ''),
  };
}

async function readMachineReading(host: HostReadings): Promise<MachineReading> {
  const [facts, topology, { machineId, systemUuid, bootId, osImage }] = await Promise.all([
    host.machine(),
    readTopology(),
    readHostFacts(),
  ]);
  return { facts, topology, machineId, systemUuid, bootId, osImage };
}

function registerMetrics({ base, edge, store, statuses, life }: StatsDeps, provider: StatsProvider): void {
  const { registry, probeRegistry, nodeName, gates } = base;
  registerKubeletMetrics(
    {
      registry,
      store,
      workers: () => life.workers,
      active: () => life.changes.active(),
      statusOf: (uid) => statuses.statusOf(uid),
      snapshots: () => edge.observer.cache.all(),
      summary: () => provider.latest,
    },
    {
      nodeName,
      cgroupVersion: edge.cgroups.version,
      version: KUBELET_VERSION,
      platform: `linux/${goArch(process.arch)}`,
      gates: gates.entries(),
    },
  );
  registerProcessMetrics(registry);
  registerProcessStart(probeRegistry);
}

const statisticsOf = ({ registry }: Foundation, provider: StatsProvider): Statistics => ({
  summary: { summary: (onlyCpuAndMemory, signal) => provider.summary({ onlyCpuAndMemory }, signal) },
  metrics: async (signal) => {
    await provider.refresh(signal);
    return registry.render();
  },
  cadvisorMetrics: (signal) => provider.cadvisorMetrics(signal),
  resourceMetrics: (signal) => provider.resourceMetrics(signal),
});
