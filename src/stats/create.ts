// Fits the parts of this folder together: what node, pods and containers use, for the server's pages and for eviction.
import type { Environment } from '../config/environment.ts';
import type { CriConnection, RuntimeVersion } from '../cri/connection.ts';
import type { ContainerStats } from '../cri/gen/cri.ts';
import type { PodUid } from '../core/ids.ts';
import { cgroupPath, kubepodsName, parseCgroupRoot, podUidOfDir, qosName } from '../host/cgroups/cgroup-names.ts';
import type { CgroupDriver } from '../host/cgroups/cgroup-names.ts';
import { detectCgroups } from '../host/cgroups/layout.ts';
import { readOwnCgroup } from '../host/cgroups/own-cgroup.ts';
import { CgroupStatisticsReader } from '../host/cgroups/statistics-reader.ts';
import { goArch, readHostFacts } from '../host/host-facts.ts';
import { readTopology } from '../host/proc.ts';
import { processStartMs } from '../lib/clock.ts';
import type { Registry } from '../lib/metrics.ts';
import type { Runnable } from '../lib/supervise.ts';
import { KUBELET_VERSION } from '../lib/version.ts';
import type { MachineReading } from './cadvisor-metrics.ts';
import { takeCensus, type Census, type CgroupPlaces } from './census.ts';
import { CgroupReadings } from './cgroup-readings.ts';
import { ContainerReadings } from './container-readings.ts';
import { CpuRates } from './cpu-rates.ts';
import { CpuSampling } from './cpu-sampling.ts';
import { readDisks, showsLayers } from './filesystems.ts';
import { HostReadings } from './host-readings.ts';
import { registerKubeletMetrics, type KubeletMetricsDeps } from './kubelet-metrics.ts';
import { registerRegistryMetrics } from './registry-metrics.ts';
import { NodeReadings } from './node-readings.ts';
import { PodReadings } from './pod-readings.ts';
import { registerProcessMetrics, registerProcessStart } from './process-metrics.ts';
import { SandboxImages } from './sandbox-images.ts';
import { StatsProvider } from './stats-provider.ts';
import type { NodeFigures } from './summary-types.ts';
import { VolumeMeasuring, type VolumeMeasuringDeps } from './volume-figures.ts';

export type Stats = {
  readonly provider: StatsProvider;
  /** Which cgroups belong to which pods. */
  readonly census: () => Promise<Census>;
  /** Called when the pods have changed. */
  readonly podsChanged: () => void;
  readonly parts: readonly Runnable[];
};

export type StatsDeps = Omit<KubeletMetricsDeps, 'registry' | 'summary'> & {
  readonly cri: Pick<CriConnection, 'runtime' | 'images'>;
  readonly volumes: { statsOf: VolumeMeasuringDeps['measure'] };
  /** Told of the node's figures whenever they were read. */
  readonly onNode: (figures: NodeFigures) => void;
  /** Served apart, on /metrics/probes. */
  readonly probeRegistry: Registry;
};

export type StatsOptions = {
  readonly runtime: RuntimeVersion;
  readonly cgroupDriver: CgroupDriver;
  readonly cgroupVersion: 1 | 2;
};

/** Mounts of containers are no filesystems of the machine. */
const RUNTIME_DIRS = ['/run/containerd', '/var/lib/containerd', '/var/lib/containers', '/run/containers', '/run/netns'];

export async function createStats(env: Environment, deps: StatsDeps, opts: StatsOptions): Promise<Stats> {
  const { clock, config, flags } = env;
  const log = env.log.child({ component: 'stats' });
  const { cri, snapshots, onNode } = deps;
  const source = new CgroupStatisticsReader(await detectCgroups());
  const places = placesOf(env, opts.cgroupDriver, await readOwnCgroup(opts.cgroupVersion));
  const rates = new CpuRates();
  const cgroups = new CgroupReadings(source, rates, clock);
  const host = new HostReadings(clock);
  const [psi, volumes] = [env.gates.enabled('KubeletPSI'), measuring(env, deps)];
  const node = new NodeReadings(
    { cgroups, births: source, host, imageFs: (signal) => cri.images.imageFsInfo({}, signal), clock },
    { nodeName: env.nodeName, rootDir: flags.rootDir, places, psi, startedMs: processStartMs(clock) },
  );
  const sandboxImages = new SandboxImages(clock, cri.runtime);
  const containers = new ContainerReadings(
    {
      cgroups,
      source,
      root: (signal) => node.root('full', signal),
      bootMs: () => host.bootMs(),
      interfaces: (pid) => host.interfaces(pid),
      sandboxImage: (id, signal) => sandboxImages.of(id, signal),
    },
    { places, runtimeName: opts.runtime.name },
  );
  const containerStats = statsOfContainers(cri);
  const census = (): Promise<Census> => takeCensus(source, places);
  const provider = new StatsProvider({
    node,
    pods: new PodReadings(
      { cgroups, processes: source, disk: host, volumesOf: (uid) => volumes.of(uid), clock },
      { rootDir: flags.rootDir, podLogsDir: config.podLogsDir, psi },
    ),
    containers,
    volumes,
    sources: {
      snapshots,
      census,
      containerStats,
      ...(env.gates.enabled('PodAndContainerStatsFromCRI') && {
        podStats: async (signal: AbortSignal) => (await cri.runtime.listPodSandboxStats({ filter: {} }, signal)).stats,
      }),
      disks: (signal) =>
        readDisks(
          (path) => host.filesystem(path),
          [flags.rootDir, ...RUNTIME_DIRS],
          showsLayers(opts.runtime.name) ? () => containerStats(signal) : undefined,
        ),
      machine: () => readMachineReading(host),
    },
    clock,
    log,
    onNode,
    showHidden: config.showHiddenMetricsForVersion !== '',
  });
  registerMetrics(env, deps, opts, provider);
  const parts = [new CpuSampling({ cgroups: source, places, rates, clock, log }), volumes];
  return { provider, census, podsChanged: () => volumes.podsChanged(), parts };
}

const statsOfContainers =
  ({ runtime }: StatsDeps['cri']) =>
  async (signal: AbortSignal): Promise<readonly ContainerStats[]> =>
    (await runtime.listContainerStats({ filter: {} }, signal)).stats;

const measuring = ({ clock, config, log, registry }: Environment, { store, volumes }: StatsDeps): VolumeMeasuring =>
  new VolumeMeasuring(
    {
      pods: () => store.all(),
      measure: (uids, signal) => volumes.statsOf(uids, signal),
      durations: registry.histogram(
        'kubelet_volume_metric_collection_duration_seconds',
        '[ALPHA] Duration in seconds to calculate volume stats',
        ['metric_source'],
      ),
      clock,
      log: log.child({ component: 'stats' }),
    },
    { periodMs: config.volumeStatsAggPeriodMs },
  );

/** Where the cgroups of pods and of the system's parts are, by configuration. `own`: where the kubelet was started. */
export function placesOf(
  { config, flags }: Pick<Environment, 'config' | 'flags'>,
  driver: CgroupDriver,
  own: string | undefined,
): CgroupPlaces {
  const root = parseCgroupRoot(config.cgroupRoot, driver);
  const pods = cgroupPath(kubepodsName(root), driver);
  const system = [
    { name: 'kubelet', path: config.kubeletCgroups || (own ?? '') },
    { name: 'runtime', path: flags.runtimeCgroups },
    { name: 'misc', path: config.systemCgroups },
  ] as const;
  return {
    pods,
    tiers: [pods, ...(['Burstable', 'BestEffort'] as const).map((qos) => cgroupPath(qosName(root, qos), driver))],
    podUidOf: (dir): PodUid | undefined => podUidOfDir(dir, driver),
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

function registerMetrics(env: Environment, deps: StatsDeps, opts: StatsOptions, provider: StatsProvider): void {
  const { clock, registry, nodeName, gates } = env;
  const startMs = processStartMs(clock);
  registerKubeletMetrics(
    { ...deps, registry, summary: () => provider.latest },
    {
      nodeName,
      cgroupVersion: opts.cgroupVersion,
      version: KUBELET_VERSION,
      platform: `linux/${goArch(process.arch)}`,
      provider: gates.enabled('PodAndContainerStatsFromCRI') ? 'cri' : 'cadvisor',
      gates: gates.entries(),
    },
  );
  registerProcessMetrics(registry, startMs);
  registerProcessStart(deps.probeRegistry, startMs);
  registerRegistryMetrics(registry, [registry, deps.probeRegistry]);
}
