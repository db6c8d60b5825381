// Everything a KubeletConfiguration must satisfy before anything starts. All findings together, in the words operators
// already know. Unknown and locked feature gates are found earlier (feature-gates.ts).
import { formatDurationMs } from '../core/duration.ts';
import { taintErrors } from '../core/taints.ts';
import { tryParseCpuSet } from '../core/cpuset.ts';
import { compareQuantities, fromUnits, tryParseQuantity } from '../core/quantity.ts';
import type { KubeletConfig } from './config-fields.ts';
import { dependencyErrors, type FeatureGates } from './feature-gates.ts';
import { allowlistErrors } from './validate-images.ts';
import { loggingErrors, tracingErrors } from './validate-logging.ts';

/** What validation has to know about the machine. */
export type HostFacts = { readonly cgroupVersion: 1 | 2 };

type Report = (message: string) => void;
type Rule = (config: KubeletConfig, gates: FeatureGates, report: Report) => void;

export function validateConfig(config: KubeletConfig, gates: FeatureGates, host: HostFacts): string[] {
  const errors: string[] = dependencyErrors(gates);
  const report = (message: string): void => void errors.push(`invalid configuration: ${message}`);
  for (const rule of RULES) rule(config, gates, report);
  if (host.cgroupVersion === 1) {
    if (config.failCgroupV1)
      errors.push(
        'kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release',
      );
    if (config.singleProcessOOMKill === false)
      report('singleProcessOOMKill must not be explicitly set to false when using cgroup v1');
  }
  if (!['', PREVIOUS_MINOR].includes(config.showHiddenMetricsForVersion))
    errors.push(
      `invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: ${JSON.stringify(config.showHiddenMetricsForVersion)}: must be omitted or have the value '${PREVIOUS_MINOR}'; only the previous minor version is allowed`,
    );
  for (const taint of config.registerWithTaints)
    if (taintErrors(taint).length > 0)
      errors.push(`invalid taint: {${taint.key} ${taint.value} ${taint.effect} ${taint.timeAdded ?? '<nil>'}}`);
  errors.push(...loggingErrors(config.logging, gates), ...tracingErrors(config.tracing));
  return errors;
}

/** The only version whose hidden metrics may be asked for. */
const PREVIOUS_MINOR = '1.35';

const oneOf = (values: readonly string[]): string => `[${values.map((v) => JSON.stringify(v)).join(' ')}]`;

const NOT_NEGATIVE = [
  ['eventBurst', 'event-burst'],
  ['eventRecordQPS', 'event-qps'],
  ['kubeAPIBurst', 'kube-api-burst'],
  ['kubeAPIQPS', 'kube-api-qps'],
  ['maxOpenFiles', 'max-open-files'],
  ['maxPods', 'max-pods'],
  ['podsPerCore', 'pods-per-core'],
  ['registryBurst', 'registry-burst'],
  ['registryPullQPS', 'registry-qps'],
] as const;

const DEFAULT_CFS_PERIOD_MS = 100;

const numbers: Rule = (c, gates, report) => {
  if (c.nodeLeaseDurationSeconds <= 0) report('nodeLeaseDurationSeconds must be greater than 0');
  for (const [field, flag] of NOT_NEGATIVE)
    if (c[field] < 0) report(`${field} (--${flag}) ${c[field]} must not be a negative number`);
  const inRange = (field: keyof KubeletConfig, flag: string, min: number, max: number): void => {
    const value = c[field] as number;
    if (value < min || value > max)
      report(`${field} (--${flag}) ${value} must be between ${min} and ${max}, inclusive`);
  };
  if (c.healthzPort !== 0) inRange('healthzPort', 'healthz-port', 1, 65535);
  inRange('port', 'port', 1, 65535);
  inRange('readOnlyPort', 'read-only-port', 0, 65535);
  inRange('imageGCHighThresholdPercent', 'image-gc-high-threshold', 0, 100);
  inRange('imageGCLowThresholdPercent', 'image-gc-low-threshold', 0, 100);
  inRange('iptablesDropBit', 'iptables-drop-bit', 0, 31);
  inRange('iptablesMasqueradeBit', 'iptables-masquerade-bit', 0, 31);
  inRange('oomScoreAdj', 'oom-score-adj', -1000, 1000);
  const period = `cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {${formatDurationMs(c.cpuCFSQuotaPeriodMs)}}`;
  if (!gates.enabled('CustomCPUCFSQuotaPeriod')) {
    if (c.cpuCFSQuotaPeriodMs !== DEFAULT_CFS_PERIOD_MS)
      report(`${period} requires feature gate CustomCPUCFSQuotaPeriod`);
  } else if (c.cpuCFSQuotaPeriodMs < 1 || c.cpuCFSQuotaPeriodMs > 1000)
    report(`${period} must be between 1ms and 1sec, inclusive`);
  if (c.nodeStatusMaxImages < -1)
    report(`nodeStatusMaxImages (--node-status-max-images) ${c.nodeStatusMaxImages} must be -1 or greater`);
  if (c.memoryThrottlingFactor <= 0 || c.memoryThrottlingFactor > 1)
    report(`memoryThrottlingFactor ${c.memoryThrottlingFactor} must be greater than 0 and less than or equal to 1.0`);
};

const images: Rule = (c, gates, report) => {
  const { imageGCHighThresholdPercent: high, imageGCLowThresholdPercent: low } = c;
  if (low >= high)
    report(
      `imageGCLowThresholdPercent (--image-gc-low-threshold) ${low} must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) ${high}`,
    );
  const [min, max] = [c.imageMinimumGCAgeMs, c.imageMaximumGCAgeMs];
  if (min < 0) report(`imageMinimumGCAge ${formatDurationMs(min)} must not be negative`);
  if (max < 0) report(`imageMaximumGCAge ${formatDurationMs(max)} must not be negative`);
  if (max > 0 && max <= min)
    report(
      `imageMaximumGCAge ${formatDurationMs(max)} must be greater than imageMinimumGCAge ${formatDurationMs(min)}`,
    );
  if (c.maxParallelImagePulls !== undefined) {
    if (c.maxParallelImagePulls < 1)
      report(`maxParallelImagePulls ${c.maxParallelImagePulls} must be a positive number`);
    else if (c.maxParallelImagePulls > 1 && c.serializeImagePulls)
      report(
        'maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false',
      );
  }
  for (const message of allowlistErrors(c, gates)) report(message);
};

const TOPOLOGY_POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'];

const choices: Rule = (c, gates, report) => {
  if (c.systemCgroups !== '' && c.cgroupRoot === '')
    report('systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified');
  if (c.serverTLSBootstrap && !gates.enabled('RotateKubeletServerCertificate'))
    report(`serverTLSBootstrap ${c.serverTLSBootstrap} requires feature gate RotateKubeletServerCertificate`);
  if (!TOPOLOGY_POLICIES.includes(c.topologyManagerPolicy))
    report(
      `topologyManagerPolicy (--topology-manager-policy) ${JSON.stringify(c.topologyManagerPolicy)} must be one of: ${oneOf(TOPOLOGY_POLICIES)}`,
    );
  if (c.topologyManagerScope !== 'container' && c.topologyManagerScope !== 'pod')
    report(
      `topologyManagerScope (--topology-manager-scope) ${JSON.stringify(c.topologyManagerScope)} must be one of: "container", or "pod"`,
    );
  if (!['', 'NoSwap', 'LimitedSwap'].includes(c.memorySwap.swapBehavior))
    report(
      `memorySwap.swapBehavior ${JSON.stringify(c.memorySwap.swapBehavior)} must be one of: "", "LimitedSwap" or "NoSwap"`,
    );
  if (!['none', 'hairpin-veth', 'promiscuous-bridge'].includes(c.hairpinMode))
    report(
      `option ${JSON.stringify(c.hairpinMode)} specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"`,
    );
  if (!['None', 'TieredReservation'].includes(c.memoryReservationPolicy))
    report(
      `option ${JSON.stringify(c.memoryReservationPolicy)} specified for memoryReservationPolicy. Valid options are "None" or "TieredReservation"`,
    );
  else if (c.memoryReservationPolicy === 'TieredReservation' && !gates.enabled('MemoryQoS'))
    report('memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled');
  if (c.containerRuntimeEndpoint === '') report('the containerRuntimeEndpoint was not specified or empty');
  if (c.enableSystemLogQuery && !gates.enabled('NodeLogQuery'))
    report('NodeLogQuery feature gate is required for enableSystemLogQuery');
  if (c.enableSystemLogQuery && !c.enableSystemLogHandler)
    report('enableSystemLogHandler is required for enableSystemLogQuery');
  if (c.registerWithTaints.some((taint) => taint.timeAdded !== undefined)) report('taint.TimeAdded is not nil');
};

const shutdown: Rule = (c, gates, report) => {
  const [total, critical] = [c.shutdownGracePeriodMs, c.shutdownGracePeriodCriticalPodsMs];
  const byPriority = c.shutdownGracePeriodByPodPriority.length > 0;
  if (!gates.enabled('GracefulNodeShutdown') && (total > 0 || critical > 0))
    report(
      'specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown',
    );
  if (!gates.enabled('GracefulNodeShutdownBasedOnPodPriority') && byPriority)
    report('Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority');
  if (byPriority && (total > 0 || critical > 0))
    report('Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time');
  if (critical > total)
    report(
      `shutdownGracePeriodCriticalPods {${formatDurationMs(critical)}} must be <= shutdownGracePeriod {${formatDurationMs(total)}}`,
    );
  for (const [field, ms] of [
    ['shutdownGracePeriod', total],
    ['shutdownGracePeriodCriticalPods', critical],
  ] as const)
    if (ms < 0 || (ms > 0 && ms < 1000))
      report(`${field} {${formatDurationMs(ms)}} must be either zero or otherwise >= 1 sec`);
};

const crashLoop: Rule = (c, gates, report) => {
  const max = c.crashLoopBackOff.maxContainerRestartPeriodMs;
  if (!gates.enabled('KubeletCrashLoopBackOffMax')) {
    if (max !== undefined)
      report(
        'FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set',
      );
  } else if (max === undefined)
    report('FeatureGate KubeletCrashLoopBackOffMax is enabled, CrashLoopBackOff.MaxContainerRestartPeriod must be set');
  else if (max < 1000 || max > 300_000)
    report(`CrashLoopBackOff.MaxContainerRestartPeriod (got: ${max / 1000} seconds) must be set between 1s and 300s`);
};

const ENFORCE = 'enforceNodeAllocatable (--enforce-node-allocatable)';
const ENFORCEABLE = [
  'pods',
  'system-reserved',
  'system-reserved-compressible',
  'kube-reserved',
  'kube-reserved-compressible',
  'none',
];

const allocatable: Rule = (c, _gates, report) => {
  const list = c.enforceNodeAllocatable;
  for (const [kind, field, cgroup] of [
    ['system-reserved', 'systemReservedCgroup (--system-reserved-cgroup)', c.systemReservedCgroup],
    ['kube-reserved', 'kubeReservedCgroup (--kube-reserved-cgroup)', c.kubeReservedCgroup],
  ] as const) {
    const compressible = `${kind}-compressible`;
    if (list.includes(kind) && list.includes(compressible))
      report(`both "${kind}" and "${compressible}" cannot be specified together in ${ENFORCE}`);
    if ((list.includes(kind) || list.includes(compressible)) && cgroup === '')
      report(`${field} must be specified when "${kind}" or "${compressible}" included in ${ENFORCE}`);
  }
  const seen = new Set<string>();
  for (const option of list) {
    if (seen.has(option)) report(`duplicated enforcements "${option}" in ${ENFORCE}`);
    seen.add(option);
    if (!ENFORCEABLE.includes(option))
      report(
        `option "${option}" specified for ${ENFORCE}. Valid options are "pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible" or "none"`,
      );
    else if (option === 'none' && list.length > 1)
      report(`${ENFORCE} may not contain additional enforcements when "none" is specified`);
    if (option !== 'none' && !c.cgroupsPerQOS)
      report(`cgroupsPerQOS (--cgroups-per-qos) must be set to true when "${option}" contained in ${ENFORCE}`);
  }
  if (c.reservedSystemCPUs === '') return;
  if (c.systemReservedCgroup !== '' || c.kubeReservedCgroup !== '')
    report(
      "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
    );
  if (tryParseCpuSet(c.reservedSystemCPUs) === undefined)
    report(
      `unable to parse reservedSystemCPUs (--reserved-cpus) ${c.reservedSystemCPUs}, error: ${cpuListError(c.reservedSystemCPUs)}`,
    );
};

/** What is wrong with the first entry of a list of CPUs that is none. */
function cpuListError(list: string): string {
  for (const range of list.split(',')) {
    const [first = '', last = first] = range.split(/-(.*)/s);
    const bad = [first, last].find((text) => !/^[+-]?\d+$/.test(text));
    if (bad !== undefined) return `strconv.Atoi: parsing ${JSON.stringify(bad)}: invalid syntax`;
    if (Number(first) > Number(last)) return `invalid range ${JSON.stringify(range)} (${first} > ${last})`;
  }
  return 'it is no list of CPUs';
}

const memory: Rule = (c, _gates, report) => {
  const seen = new Set<string>();
  for (const { numaNode, limits } of c.reservedMemory)
    for (const [type, amount] of Object.entries(limits)) {
      if (type !== 'memory' && !type.startsWith('hugepages-'))
        report(
          `the limit type "${type}" for NUMA node ${numaNode} is not supported, only [memory hugepages-<HugePageSize>] is accepted`,
        );
      const parsed = tryParseQuantity(amount);
      if (parsed === undefined)
        report(
          `the reserved memory ${JSON.stringify(amount)} for NUMA node ${numaNode} and resource "${type}" is no quantity`,
        );
      else if (compareQuantities(parsed, fromUnits(0)) <= 0)
        report(`reserved memory may not be zero for NUMA node ${numaNode} and resource "${type}"`);
      const key = `${numaNode}/${type}`;
      if (seen.has(key))
        report(`the reserved memory has a duplicate value for NUMA node ${numaNode} and resource "${type}"`);
      seen.add(key);
    }
};

const logs: Rule = (c, _gates, report) => {
  if (c.containerLogMaxWorkers < 1) report('containerLogMaxWorkers must be greater than or equal to 1');
  if (c.containerLogMonitorIntervalMs < 3000)
    report('containerLogMonitorInterval must be a positive time duration greater than or equal to 3s');
  if (c.containerLogMaxFiles <= 1) report('containerLogMaxFiles must be greater than 1');
  const path = c.podLogsDir;
  if (path === '') return report('podLogsDir was not specified');
  if (!path.startsWith('/')) report(`pod logs path ${JSON.stringify(path)} must be absolute path`);
  if (cleaned(path) !== path) report(`pod logs path ${JSON.stringify(path)} must be normalized`);
  if (/[^\x20-\x7e]/.test(path)) report(`pod logs path ${JSON.stringify(path)} mut contains ASCII characters only`);
};

/** The shortest equal path, without a trailing slash. */
function cleaned(path: string): string {
  const rooted = path.startsWith('/');
  const out: string[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..' && out.length > 0 && out.at(-1) !== '..') out.pop();
    else if (part !== '..' || !rooted) out.push(part);
  }
  return (rooted ? '/' : '') + out.join('/') || '.';
}

const userNamespaces: Rule = (c, _gates, report) => {
  const ids = c.userNamespaces?.idsPerPod;
  if (ids === undefined) return;
  if (ids < 65536) report('userNamespaces.idsPerPod must not be less than 65536');
  if (ids % 65536 !== 0) report('userNamespaces.idsPerPod must be a multiple of 65536');
  if (ids > 4294967295) report('userNamespaces.idsPerPod must not be more than 4294967295');
};

const RULES: readonly Rule[] = [
  numbers,
  images,
  choices,
  shutdown,
  crashLoop,
  allocatable,
  memory,
  logs,
  userNamespaces,
];
