// What is checked after validation and before anything runs: values whose meaning depends on the machine, and values that
// upstream only trips over while its parts are being built. Gives the configuration with what follows from them.
import { formatCpuSet, isCpuSubset, tryParseCpuSet, type CpuSet } from '../core/cpuset.ts';
import { tryParseDuration } from '../core/duration.ts';
import { tryParseQuantity } from '../core/quantity.ts';
import { parseReservation } from '../core/resource-list.ts';
import { KubeletError } from '../lib/errors.ts';
import type { KubeletConfig } from './config-fields.ts';

export type MachineFacts = { readonly cgroupVersion: 1 | 2; readonly onlineCpus: () => CpuSet };

/** The configuration with everything that follows from it filled in; throws with all that is wrong. */
export function settleConfig(config: KubeletConfig, machine: MachineFacts): KubeletConfig {
  const problems = [
    ...reservationProblems(config),
    ...cpuProblems(config, machine),
    ...evictionProblems(config),
    ...servingProblems(config),
    ...valueProblems(config),
    ...(config.memorySwap.swapBehavior === 'LimitedSwap' && machine.cgroupVersion === 1
      ? ['swap feature is enabled and LimitedSwap but it is only supported with cgroupv2']
      : []),
  ];
  if (problems.length > 0)
    throw new KubeletError('invalid', problems.length === 1 ? problems.join('') : `[${problems.join(', ')}]`, {
      detail: { prefix: 'failed to run kubelet: ', problems, suffix: '' },
    });
  return withConsequences(config);
}

function withConsequences(config: KubeletConfig): KubeletConfig {
  let out = config;
  if (config.cgroupsPerQOS && config.cgroupRoot === '') out = { ...out, cgroupRoot: '/' };
  if (config.reservedSystemCPUs !== '') {
    const { cpu: _, ...kubeReserved } = config.kubeReserved;
    const count = tryParseCpuSet(config.reservedSystemCPUs)?.size ?? 0;
    out = { ...out, kubeReserved, systemReserved: { ...config.systemReserved, cpu: String(count) } };
  }
  return out;
}

function reservationProblems(config: KubeletConfig): string[] {
  const problems: string[] = [];
  for (const [flag, list] of [
    ['kube-reserved', config.kubeReserved],
    ['system-reserved', config.systemReserved],
  ] as const) {
    const parsed = parseReservation(list);
    if (typeof parsed === 'string') problems.push(`--${flag} value failed to parse: ${parsed}`);
  }
  for (const [name, share] of Object.entries(config.qosReserved)) {
    const percent = /^(\d+)%$/.exec(share)?.[1];
    if (name !== 'memory' || percent === undefined || Number(percent) > 100)
      problems.push(`--qos-reserved value failed to parse: ${name}=${share}: only memory, with a share of 0% to 100%`);
  }
  return problems;
}

function cpuProblems(config: KubeletConfig, machine: MachineFacts): string[] {
  if (config.reservedSystemCPUs === '') return [];
  const reserved = tryParseCpuSet(config.reservedSystemCPUs);
  if (reserved === undefined) return [];
  const online = machine.onlineCpus();
  if (isCpuSubset(reserved, online)) return [];
  return [`reserved-cpus: ${formatCpuSet(reserved)} is not a subset of online-cpus: ${formatCpuSet(online)}`];
}

const SIGNALS = new Set([
  'memory.available',
  'allocatableMemory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'containerfs.available',
  'containerfs.inodesFree',
  'pid.available',
]);

/** Thresholds, grace periods and reclaims must name a signal and hold an amount of the right kind. */
function evictionProblems(config: KubeletConfig): string[] {
  const problems: string[] = [];
  const each = (
    field: 'evictionHard' | 'evictionSoft' | 'evictionSoftGracePeriod' | 'evictionMinimumReclaim',
    check: (value: string) => string | undefined,
  ): void => {
    for (const [signal, value] of Object.entries(config[field])) {
      const why = SIGNALS.has(signal) ? check(value) : `unsupported eviction signal ${signal}`;
      if (why !== undefined) problems.push(`${field}: ${why}`);
    }
  };
  each('evictionHard', amountProblem);
  each('evictionSoft', amountProblem);
  each('evictionMinimumReclaim', reclaimProblem);
  each('evictionSoftGracePeriod', (value) => {
    const nanos = tryParseDuration(value);
    if (nanos === undefined) return `time: invalid duration ${JSON.stringify(value)}`;
    return nanos < 0 ? `invalid eviction grace period specified: ${value} must be a positive value` : undefined;
  });
  for (const signal of Object.keys(config.evictionSoft))
    if (!Object.hasOwn(config.evictionSoftGracePeriod, signal))
      problems.push(`grace period must be specified for the soft eviction threshold ${signal}`);
  return problems;
}

function amountProblem(value: string): string | undefined {
  if (value.endsWith('%')) {
    const percent = Number(value.slice(0, -1));
    if (value === '%' || Number.isNaN(percent)) return `invalid percentage ${JSON.stringify(value)}`;
    if (percent < 0) return `eviction percentage threshold ${value} must be >= 0%`;
    return percent > 100 ? `eviction percentage threshold ${value} must be <= 100%` : undefined;
  }
  const amount = tryParseQuantity(value);
  if (amount === undefined) return `${JSON.stringify(value)} is neither a quantity nor a percentage`;
  return amount.nano <= 0n ? `eviction threshold ${value} must be positive` : undefined;
}

/** Nothing may be reclaimed in addition, and more than there is. */
function reclaimProblem(value: string): string | undefined {
  const amount = tryParseQuantity(value);
  if (amount !== undefined)
    return amount.nano < 0n ? `negative eviction minimum reclaim specified: ${value}` : undefined;
  const percent = value.endsWith('%') && value !== '%' ? Number(value.slice(0, -1)) : NaN;
  if (Number.isNaN(percent)) return `${JSON.stringify(value)} is neither a quantity nor a percentage`;
  return percent <= 0 ? `eviction percentage minimum reclaim ${value} must be positive` : undefined;
}

const TLS_VERSIONS = ['', 'VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'];

function servingProblems(config: KubeletConfig): string[] {
  const problems: string[] = [];
  if (!TLS_VERSIONS.includes(config.tlsMinVersion))
    problems.push(`unknown tls version ${JSON.stringify(config.tlsMinVersion)}`);
  for (const suite of config.tlsCipherSuites)
    if (!/^TLS_[A-Z0-9_]+$/.test(suite)) problems.push(`Cipher suite ${suite} not supported or doesn't exist`);
  const mode: string = config.authorization.mode;
  if (mode === '') problems.push('no authorization mode specified');
  else if (mode !== 'AlwaysAllow' && mode !== 'Webhook') problems.push(`unknown authorization mode ${mode}`);
  return problems;
}

function valueProblems(config: KubeletConfig): string[] {
  const problems: string[] = [];
  if (config.syncFrequencyMs <= 0) problems.push(`invalid sync frequency ${config.syncFrequencyMs * 1e6}`);
  if (tryParseQuantity(config.containerLogMaxSize) === undefined)
    problems.push(`failed to parse container log max size ${JSON.stringify(config.containerLogMaxSize)}`);
  const driver: string = config.cgroupDriver;
  if (driver !== 'cgroupfs' && driver !== 'systemd')
    problems.push(`invalid cgroup driver ${JSON.stringify(driver)}, must be cgroupfs or systemd`);
  const strategy: string = config.configMapAndSecretChangeDetectionStrategy;
  if (strategy !== 'Get' && strategy !== 'Cache' && strategy !== 'Watch')
    problems.push(`unknown configmap and secret manager mode: ${strategy}`);
  if (config.cpuManagerPolicy !== 'none' && config.cpuManagerPolicy !== 'static')
    problems.push(`unknown policy: "${config.cpuManagerPolicy}"`);
  if (config.memoryManagerPolicy !== 'None' && config.memoryManagerPolicy !== 'Static')
    problems.push(`unknown policy: "${config.memoryManagerPolicy}"`);
  return problems;
}
