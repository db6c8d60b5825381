// The composition root: builds the parts in start order, fits them together and runs them until told to stop.
import { buildFoundation, type Foundation } from './assembly/foundation.ts';
import type { ClusterPort } from './assembly/cluster-port.ts';
import { buildImages } from './assembly/images.ts';
import { buildPodLife, type PodLife } from './assembly/pod-life.ts';
import { buildPodRuntime } from './assembly/pod-runtime.ts';
import { buildRuntimeEdge, type RuntimeEdge } from './assembly/runtime-edge.ts';
import { buildSources } from './assembly/sources.ts';
import { buildStandalone } from './assembly/standalone.ts';
import { buildVolumes } from './assembly/volumes.ts';
import { appArmorHostProblem } from './admission/app-armor.ts';
import { PodAdmission } from './admission/pod-admission.ts';
import { SysctlAllowlist } from './admission/sysctls.ts';
import type { KubeletConfig } from './config/config-fields.ts';
import type { FeatureGates } from './config/feature-gates.ts';
import type { KubeletFlags } from './config/flags.ts';
import type { ConfigUpdates } from './config/updates.ts';
import type { PodUid } from './core/ids.ts';
import type { LogLevels } from './host/process/log-levels.ts';
import type { LogOutput } from './host/process/log-output.ts';
import type { Systemd } from './host/process/sd-notify.ts';
import { Watchdog } from './host/process/watchdog.ts';
import { aborted } from './lib/abort.ts';
import type { Clock } from './lib/clock.ts';
import type { Logger } from './lib/logger.ts';
import { Registry } from './lib/metrics.ts';
import { supervise, type Runnable } from './lib/supervise.ts';
import type { Verdict } from './pods/pod-changes.ts';
import { PodStore } from './pods/pod-store.ts';
import { ProbeManager } from './probes/probe-manager.ts';
import { ProbeMetrics } from './probes/probe-metrics.ts';
import { containerProber } from './probes/probers.ts';
import { CgroupTree } from './resources/cgroup-tree.ts';
import { ContainerManagerHooks } from './resources/container-manager-hook.ts';
import { PodCgroups } from './resources/pod-cgroups.ts';
import { HealthzServer } from './server/healthz.ts';
import { LocalObjectStore } from './sources/local-objects.ts';
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

const STUCK_LOG_MS = 2 * 60_000;

export async function runKubelet(options: KubeletOptions, signal: AbortSignal): Promise<void> {
  const { config, clock, log, logOutput, systemd } = options;
  const base = buildFoundation(options);
  const parts: Runnable[] = [{ name: 'until-stopped', run: (stop) => aborted(stop) }];
  if (config.healthzPort > 0)
    parts.push(
      new HealthzServer(
        { clock, log: log.child({ component: 'healthz' }) },
        { address: config.healthzBindAddress, port: config.healthzPort },
      ),
    );
  if (systemd.watchdogMs !== undefined)
    parts.push(
      new Watchdog(
        { systemd, clock, log, failing: () => (logOutput.stuckForMs() > STUCK_LOG_MS ? 'log' : undefined) },
        { intervalMs: systemd.watchdogMs },
      ),
    );
  parts.push({ name: 'node', run: (stop) => runNode(base, () => systemd.notify('READY=1'), stop) });
  await supervise(parts, log, signal);
}

/** Everything that needs the container runtime. */
async function runNode(base: Foundation, onReady: () => void, signal: AbortSignal): Promise<void> {
  const { clock, log } = base;
  const objects = new LocalObjectStore();
  const edge = await buildRuntimeEdge(base, signal);
  try {
    const statuses = new StatusStore({
      clock,
      log: log.child({ component: 'status' }),
      onChange: (uid) => cluster.statusChanged(uid),
    });
    const cluster: ClusterPort = await buildStandalone(base, edge.resources, objects, (kind, namespace, name) =>
      volumes.manager.objectChanged(kind, namespace, name),
    );
    const volumes = buildVolumes(base, cluster, edge.resources, statuses);
    const images = await buildImages(base, edge.cri.images, cluster, signal);
    const hooks = new ContainerManagerHooks([]);
    const cgroups = buildPodCgroups(base, edge, hooks);
    const { runtime } = await buildPodRuntime(base, edge, { cluster, volumes, images, cgroups });
    const store = new PodStore();
    const probes = buildProbes(base, edge, { cluster, store, statuses, wake: (uid) => life.workers.wake(uid) });
    const admission = await buildAdmission(base, edge, cluster, hooks);
    const life: PodLife = buildPodLife({
      base,
      edge,
      cluster,
      volumes,
      cgroups,
      runtime,
      probes,
      statuses,
      store,
      messages: new TerminationMessages(async () => ''),
      admit: async (pod, active, stop) => admitAndPreempt(await admission.admit(pod, active, stop)),
      sourcesReady: () => sources.merged.sourcesReady(),
      removeContainers: async (uid, stop) => {
        for (const container of edge.observer.cache.get(uid)?.containers ?? [])
          if (container.state !== 'running') await runtime.removeContainer(container, false, stop);
      },
    });
    const sources = buildSources(base, cluster, {
      objects,
      isRunning: (uid) => edge.observer.cache.get(uid as PodUid) !== undefined,
      onChange: (change) => {
        void life.changes.handle(change);
        if (sources.merged.sourcesReady()) volumes.manager.setSourcesReady();
      },
    });
    const tree = new CgroupTree(
      {
        cgroups: edge.cgroups,
        pods: { active: () => life.changes.active() },
        node: edge.resources,
        events: cluster.events,
        clock,
        log,
      },
      {
        driver: edge.cgroupDriver,
        root: base.config.cgroupRoot || '/',
        enforce: base.config.enforceNodeAllocatable,
        systemReservedCgroup: base.config.systemReservedCgroup,
        kubeReservedCgroup: base.config.kubeReservedCgroup,
      },
    );
    await tree.setUp(signal);
    await volumes.manager.reconstruct(signal);
    await edge.health.check(signal);
    cluster.events.node('Normal', 'Starting', 'Starting kubelet.');
    const afterRelist: Runnable = {
      name: 'pods',
      run: async (stop) => {
        await edge.observer.cache.whenReady(stop);
        onReady();
        await supervise([...life.parts, ...sources.parts], log, stop);
      },
    };
    await supervise(
      [...cluster.parts, edge.observer, edge.health, tree, volumes.manager, probes, afterRelist],
      log,
      signal,
    );
  } finally {
    edge.cri.close();
  }
}

const buildPodCgroups = ({ clock, config }: Foundation, edge: RuntimeEdge, hooks: ContainerManagerHooks): PodCgroups =>
  new PodCgroups({ cgroups: edge.cgroups, clock, hasExclusiveCpus: (uid) => hooks.hasExclusiveCpus(uid) }, {
    driver: edge.cgroupDriver,
    root: config.cgroupRoot || '/',
    cpuCfsQuota: config.cpuCFSQuota,
    cpuPeriodUs: Math.round(config.cpuCFSQuotaPeriodMs * 1000),
    podPidsLimit: config.podPidsLimit,
    hugePageSizes: edge.resources.machine.hugePages.map((pool) => pool.sizeBytes),
  });

function buildProbes(
  { clock, log }: Foundation,
  edge: RuntimeEdge,
  around: { cluster: ClusterPort; store: PodStore; statuses: StatusStore; wake: (uid: PodUid) => void },
): ProbeManager {
  const { cluster, store, statuses, wake } = around;
  const prober = containerProber(clock, (containerId, cmd, timeoutSeconds, signal) =>
    edge.cri.runtime.execSync({ containerId, cmd, timeout: timeoutSeconds }, signal),
  );
  return new ProbeManager({
    pods: { pod: (uid) => store.get(uid), status: (uid) => statuses.statusOf(uid) },
    prober,
    onResult: (change) => wake(change.uid),
    events: cluster.events,
    clock,
    log: log.child({ component: 'probes' }),
    metrics: new ProbeMetrics(new Registry()),
  });
}

async function buildAdmission(
  { config, gates, log }: Foundation,
  edge: RuntimeEdge,
  cluster: ClusterPort,
  hooks: ContainerManagerHooks,
): Promise<PodAdmission> {
  return new PodAdmission(
    {
      node: { node: () => cluster.node(), fresh: (signal) => cluster.freshNode(signal) },
      hooks,
      sysctls: new SysctlAllowlist(config.allowedUnsafeSysctls, edge.resources.machine.kernelRelease),
      nodeConditions: () => [],
      shuttingDown: () => false,
      log: log.child({ component: 'admission' }),
    },
    {
      podLevelResources: gates.enabled('PodLevelResources'),
      declaredFeatures: [],
      appArmorProblem: await appArmorHostProblem(),
    },
  );
}

/** Preemption makes room for a critical pod. */
const admitAndPreempt = (verdict: Awaited<ReturnType<PodAdmission['admit']>>): Verdict =>
  verdict.ok ? { ok: true } : verdict;
