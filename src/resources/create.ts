// Fits the node's resources and the cgroups to the configuration and the machine.
import type { Environment } from '../config/environment.ts';
import { tryParseCpuSet } from '../core/cpuset.ts';
import type { CgroupDriver } from '../host/cgroups/cgroup-names.ts';
import type { Cgroups } from '../host/cgroups/cgroups.ts';
import { readMachine } from '../host/machine.ts';
import { CgroupTree, type CgroupTreeDeps } from './cgroup-tree.ts';
import { memoryQosMetrics } from './memory-qos-metrics.ts';
import { NodeResources } from './node-resources.ts';
import { PodCgroups, type PodCgroupsDeps } from './pod-cgroups.ts';
import { percentOf, type QosTierOptions } from './qos-tiers.ts';

/** Cgroups and resources of this machine; the runtime says which driver manages them. */
export type MachineCgroups = {
  readonly cgroups: Cgroups;
  readonly cgroupDriver: CgroupDriver;
  readonly resources: NodeResources;
};

export const createNodeResources = ({ config, flags }: Pick<Environment, 'config' | 'flags'>): NodeResources =>
  new NodeResources(
    { machine: () => readMachine() },
    {
      rootDir: flags.rootDir,
      maxPods: config.maxPods,
      podsPerCore: config.podsPerCore,
      kubeReserved: config.kubeReserved,
      systemReserved: config.systemReserved,
      reservedCpus: [...(tryParseCpuSet(config.reservedSystemCPUs) ?? [])],
      evictionHard: config.evictionHard,
      ignoreEviction: flags.experimentalAllocatableIgnoreEviction,
      reportEphemeralStorage: config.localStorageCapacityIsolation,
    },
  );

/** Memory QoS needs cgroup v2; undefined where it is off. */
export const memoryReservation = (
  { config, gates }: Pick<Environment, 'config' | 'gates'>,
  cgroupVersion: 1 | 2,
): QosTierOptions['memoryReservation'] =>
  gates.enabled('MemoryQoS') && cgroupVersion === 2 ? config.memoryReservationPolicy : undefined;

/** `hooks` says whether a pod owns whole CPUs. */
export function createPodCgroups(
  env: Environment,
  { cgroups, cgroupDriver, resources }: MachineCgroups,
  hooks: { hasExclusiveCpus: PodCgroupsDeps['hasExclusiveCpus'] },
): PodCgroups {
  const { clock, config, registry } = env;
  return new PodCgroups(
    {
      cgroups,
      clock,
      hasExclusiveCpus: (pod) => hooks.hasExclusiveCpus(pod),
      durations: registry.histogram(
        'kubelet_cgroup_manager_duration_seconds',
        '[ALPHA] Duration in seconds for cgroup manager operations. Broken down by method.',
        ['operation_type'],
      ),
    },
    {
      driver: cgroupDriver,
      root: config.cgroupRoot || '/',
      perQos: config.cgroupsPerQOS,
      cpuCfsQuota: config.cpuCFSQuota,
      cpuPeriodUs: Math.round(config.cpuCFSQuotaPeriodMs * 1000),
      podPidsLimit: config.podPidsLimit,
      hugePageSizes: resources.machine.hugePages.map((pool) => pool.sizeBytes),
      reserveMemory: memoryReservation(env, cgroups.version) === 'TieredReservation',
    },
  );
}

export function createCgroupTree(
  env: Environment,
  { cgroups, cgroupDriver, resources }: MachineCgroups,
  deps: Pick<CgroupTreeDeps, 'pods' | 'events'>,
): CgroupTree {
  const { clock, config, log, gates, registry } = env;
  const tree = new CgroupTree(
    { ...deps, cgroups, node: resources, clock, log: log.child({ component: 'cgroups' }) },
    {
      driver: cgroupDriver,
      root: config.cgroupRoot || '/',
      perQos: config.cgroupsPerQOS,
      enforce: config.enforceNodeAllocatable,
      systemReservedCgroup: config.systemReservedCgroup,
      kubeReservedCgroup: config.kubeReservedCgroup,
      tiers: {
        memoryReservation: memoryReservation(env, cgroups.version),
        reservedPercent: gates.enabled('QOSReserved') ? percentOf(config.qosReserved['memory']) : undefined,
      },
    },
  );
  if (gates.enabled('MemoryQoS')) memoryQosMetrics(registry, tree);
  return tree;
}
