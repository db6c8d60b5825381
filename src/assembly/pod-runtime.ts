// The pod runtime: what a pod becomes in the container runtime, fitted with everything around it.
import { join } from 'node:path';
import { quantity, toNumber } from '../core/quantity.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import { uncancelled } from '../cri/uncancelled.ts';
import { isSelinuxEnabled } from '../host/selinux.ts';
import { thermalPaths } from '../host/thermal.ts';
import { undefinedIfNotFound } from '../lib/errors.ts';
import type { Images } from './images.ts';
import type { ContainerManagerHooks } from '../resources/container-manager-hook.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import { crashBackoffOf, pageSizeName, swapFactsOf } from '../runtime/configured-facts.ts';
import type { RuntimeFacts } from '../runtime/facts.ts';
import type { MemoryQosFacts } from '../runtime/memory-qos.ts';
import { hookHttp } from '../runtime/hook-http.ts';
import { runtimeMetrics } from '../runtime/metrics.ts';
import type { ResizeRecords } from '../runtime/needs.ts';
import { PodRuntime } from '../runtime/pod-runtime.ts';
import { subordinateIds } from '../runtime/subordinate-ids.ts';
import { UserNamespaces } from '../runtime/user-namespaces.ts';
import type { PodMetrics } from '../pods/pod-metrics.ts';
import type { ClusterPort } from './cluster-port.ts';
import { live, type Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import { tracedImages } from '../trace/traced-ports.ts';
import type { Volumes } from './volumes.ts';

const IDS_PER_POD = 65_536;

export type PodRuntimeParts = { readonly runtime: PodRuntime; readonly userns: UserNamespaces };

export async function buildPodRuntime(
  base: Foundation,
  edge: RuntimeEdge,
  deps: {
    cluster: ClusterPort;
    volumes: Volumes;
    images: Images;
    cgroups: PodCgroups;
    hooks: ContainerManagerHooks;
    claims: { prepare(pod: Pod, signal: AbortSignal): Promise<void> };
    resize: ResizeRecords;
    podMetrics: PodMetrics;
  },
  signal: AbortSignal,
): Promise<PodRuntimeParts> {
  const { config, flags, clock, log, registry } = base;
  const { cluster, volumes, images, cgroups } = deps;
  const idsPerPod = config.userNamespaces?.idsPerPod ?? IDS_PER_POD;
  const range = await subordinateIds({ idsPerPod, maxPods: config.maxPods }, signal);
  const userns = new UserNamespaces({ rootDir: flags.rootDir, idsPerPod, maxPods: config.maxPods, range });
  await userns.restore(await volumes.podDirs.list());
  const traced = tracedImages(base.tracer, images.puller);
  const runtime = new PodRuntime(
    {
      cri: uncancelled(base.clock, edge.cri.runtime, signal),
      images: {
        ensure: (request, stop) => deps.podMetrics.pulling(uidOf(request.pod), () => traced.ensure(request, stop)),
      },
      volumes: volumes.manager,
      resources: {
        cgroupParentOf: (pod) => cgroups.parentOf(pod),
        prepare: (pod, stop) => deps.claims.prepare(pod, stop),
        hooks: deps.hooks,
        resize: deps.resize,
      },
      cluster: {
        configMap: (namespace, name, signal) => undefinedIfNotFound(cluster.configMap(namespace, name, signal)),
        secret: (namespace, name, signal) => undefinedIfNotFound(cluster.secret(namespace, name, signal)),
        services: () => cluster.services(),
        nodeIps: () => cluster.nodeIps(),
        allocatable: () => edge.resources.allocatableList(),
        runtimeHandler: (className, signal) => cluster.runtimeHandler(className, signal),
        handlerFeatures: (handler) => edge.health.handlerFeatures(handler),
      },
      events: cluster.events,
      infra: { clock, log, metrics: runtimeMetrics(registry), http: hookHttp(clock), userns },
    },
    await runtimeFacts(base, edge),
  );
  return { runtime, userns };
}

const memoryQosFacts = ({ config }: Foundation, { resources }: RuntimeEdge): MemoryQosFacts => ({
  throttlingFactor: config.memoryThrottlingFactor ?? 1,
  tiered: config.memoryReservationPolicy === 'TieredReservation',
  allocatableBytes: () => toNumber(resources.allocatable().get('memory') ?? quantity('0')),
});

/** What decides whether containers may swap. */
export const swapFacts = (
  { config }: Foundation,
  { cgroups, resources }: RuntimeEdge,
): ReturnType<typeof swapFactsOf> =>
  swapFactsOf({
    swapBehavior: config.memorySwap.swapBehavior,
    cgroupVersion: cgroups.version,
    swapBytes: resources.machine.swapBytes,
  });

async function runtimeFacts(base: Foundation, edge: RuntimeEdge): Promise<RuntimeFacts> {
  const { config, flags, gates } = base;
  const { machine } = edge.resources;
  const version = edge.cgroups.version;
  const [extraMaskedPaths, selinux] = await Promise.all([thermalPaths(), isSelinuxEnabled()]);
  return live(base, ['clusterDNS', 'clusterDomain'], (now) => ({
    cpuCfsQuota: config.cpuCFSQuota,
    cpuCfsPeriodUs: Math.round(config.cpuCFSQuotaPeriodMs * 1000),
    memoryCapacityBytes: machine.memoryBytes,
    swapCapacityBytes: machine.swapBytes,
    ...swapFacts(base, edge),
    singleProcessOomKill: config.singleProcessOOMKill ?? version === 1,
    hugePageSizes: machine.hugePages.map((pool) => pageSizeName(pool.sizeBytes)),
    ...(gates.enabled('MemoryQoS') && version === 2 && { memoryQos: memoryQosFacts(base, edge) }),
    podLogsDir: config.podLogsDir,
    get clusterDomain() {
      return now.current.clusterDomain;
    },
    get clusterDns() {
      return now.current.clusterDNS;
    },
    seccompDefault: config.seccompDefault || flags.seccompDefault,
    seccompDir: join(flags.rootDir, 'seccomp'),
    extraMaskedPaths,
    stopSignals: gates.enabled('ContainerStopSignals'),
    rootDir: flags.rootDir,
    containerLogsDir: '/var/log/containers',
    resolvConf: config.resolvConf,
    nodeHostsFile: '/etc/hosts',
    selinux,
    crashBackoff: crashBackoffOf(
      gates.enabled('ReduceDefaultCrashLoopBackOffDecay'),
      config.crashLoopBackOff.maxContainerRestartPeriodMs,
    ),
    kubernetesVersion: '1.36',
  }));
}
