// Facts that follow from the configuration and the machine by a rule. Pure.
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import { CONTAINER_LOGS } from '../core/log-links.ts';
import { podIpFamily } from '../core/pod-ips.ts';
import type { MemoryQosFacts } from './memory-qos.ts';
import type { CrashBackoffOptions } from './crash-backoff.ts';
import type { RuntimeFacts } from './facts.ts';

/** What of the machine and the kubelet's start matters to containers. */
export type HostOfContainers = {
  readonly cgroupVersion: 1 | 2;
  readonly memoryBytes: number;
  readonly swapBytes: number;
  /** Whether the kernel limits swap per cgroup, whether or not there is any now. */
  readonly limitsSwap: boolean;
  readonly hugePages: readonly { readonly sizeBytes: number }[];
  /** The memory of all pods together, which may change. */
  readonly podMemoryBytes: () => number;
  readonly extraMaskedPaths: readonly string[];
  readonly selinux: boolean;
};

export function configuredFacts(env: Environment, host: HostOfContainers): RuntimeFacts {
  const { config, flags, gates } = env;
  const memoryQos = memoryQosOf(env, host);
  return env.updates.live(['clusterDNS', 'clusterDomain'], (now) => ({
    cpuCfsQuota: config.cpuCFSQuota,
    cpuCfsPeriodUs: Math.round(config.cpuCFSQuotaPeriodMs * 1000),
    memoryCapacityBytes: host.memoryBytes,
    swapCapacityBytes: host.swapBytes,
    ...swapFactsOf({ swapBehavior: config.memorySwap.swapBehavior, ...host }),
    singleProcessOomKill: config.singleProcessOOMKill ?? host.cgroupVersion === 1,
    hugePageSizes: host.hugePages.map((pool) => pageSizeName(pool.sizeBytes)),
    ...(memoryQos === undefined ? {} : { memoryQos }),
    podLogsDir: config.podLogsDir,
    get clusterDomain() {
      return now.current.clusterDomain;
    },
    get clusterDns() {
      return now.current.clusterDNS;
    },
    seccompDefault: config.seccompDefault || flags.seccompDefault,
    seccompDir: join(flags.rootDir, 'seccomp'),
    extraMaskedPaths: host.extraMaskedPaths,
    stopSignals: gates.enabled('ContainerStopSignals'),
    rootDir: flags.rootDir,
    containerLogsDir: CONTAINER_LOGS,
    resolvConf: config.resolvConf,
    nodeHostsFile: '/etc/hosts',
    selinux: host.selinux,
    crashBackoff: crashBackoffOf(
      gates.enabled('ReduceDefaultCrashLoopBackOffDecay'),
      config.crashLoopBackOff.maxContainerRestartPeriodMs,
    ),
    ipFamily: podIpFamily(flags.nodeIp),
    kubernetesVersion: '1.36',
  }));
}

/** Memory QoS needs cgroup v2. */
export const memoryQosOf = (
  { config, gates }: Pick<Environment, 'config' | 'gates'>,
  host: Pick<HostOfContainers, 'cgroupVersion' | 'podMemoryBytes'>,
): MemoryQosFacts | undefined =>
  gates.enabled('MemoryQoS') && host.cgroupVersion === 2
    ? {
        throttlingFactor: config.memoryThrottlingFactor,
        tiered: config.memoryReservationPolicy === 'TieredReservation',
        podMemoryBytes: host.podMemoryBytes,
      }
    : undefined;

/** What decides whether containers may swap. */
export const swapFactsOf = (given: {
  readonly swapBehavior: string;
  readonly cgroupVersion: 1 | 2;
  readonly limitsSwap: boolean;
}): Pick<RuntimeFacts, 'cgroupVersion' | 'swapBehavior' | 'swapAccounting'> => ({
  cgroupVersion: given.cgroupVersion,
  swapBehavior: given.swapBehavior === 'LimitedSwap' ? 'LimitedSwap' : 'NoSwap',
  swapAccounting: given.limitsSwap,
});

/** `reduced`: gate `ReduceDefaultCrashLoopBackOffDecay`; `maxMs`: `crashLoopBackOff.maxContainerRestartPeriod`. */
export function crashBackoffOf(reduced: boolean, maxMs: number | undefined): CrashBackoffOptions {
  const usual = reduced ? { initialMs: 1000, maxMs: 60_000 } : { initialMs: 10_000, maxMs: 300_000 };
  return { ...usual, maxMs: maxMs ?? usual.maxMs };
}

/** `2MB`, `1GB`: the way the runtime names huge page sizes. */
export function pageSizeName(bytes: number): string {
  let [size, units] = [bytes, ['B', 'KB', 'MB', 'GB', 'TB']];
  while (size >= 1024 && size % 1024 === 0 && units.length > 1) [size, units] = [size / 1024, units.slice(1)];
  return `${size}${units.slice(0, 1).join('')}`;
}
