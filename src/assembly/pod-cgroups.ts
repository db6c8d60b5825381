// Cgroups: the tree above the pods, and the pods' own.
import type { Pod } from '../core/pod.ts';
import { CgroupTree } from '../resources/cgroup-tree.ts';
import type { ContainerManagerHooks } from '../resources/container-manager-hook.ts';
import { memoryQosMetrics } from '../resources/memory-qos-metrics.ts';
import { PodCgroups } from '../resources/pod-cgroups.ts';
import { percentOf, type QosTierOptions } from '../resources/qos-tiers.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

/** Memory QoS needs cgroup v2; undefined where it is off. */
const memoryReservation = ({ config, gates }: Foundation, edge: RuntimeEdge): QosTierOptions['memoryReservation'] =>
  gates.enabled('MemoryQoS') && edge.cgroups.version === 2 ? config.memoryReservationPolicy : undefined;

export const buildPodCgroups = (base: Foundation, edge: RuntimeEdge, hooks: ContainerManagerHooks): PodCgroups => {
  const { clock, config, registry } = base;
  return new PodCgroups(
    {
      cgroups: edge.cgroups,
      clock,
      hasExclusiveCpus: (uid) => hooks.hasExclusiveCpus(uid),
      durations: registry.histogram(
        'kubelet_cgroup_manager_duration_seconds',
        'Duration in seconds for cgroup manager operations. Broken down by method.',
        ['operation_type'],
      ),
    },
    {
      driver: edge.cgroupDriver,
      root: config.cgroupRoot || '/',
      perQos: config.cgroupsPerQOS,
      cpuCfsQuota: config.cpuCFSQuota,
      cpuPeriodUs: Math.round(config.cpuCFSQuotaPeriodMs * 1000),
      podPidsLimit: config.podPidsLimit,
      hugePageSizes: edge.resources.machine.hugePages.map((pool) => pool.sizeBytes),
      reserveMemory: memoryReservation(base, edge) === 'TieredReservation',
    },
  );
};

export const buildCgroupTree = (
  base: Foundation,
  edge: RuntimeEdge,
  deps: { readonly cluster: ClusterPort; readonly active: () => readonly Pod[] },
): CgroupTree => {
  const { clock, config, log, gates, registry } = base;
  const tree = new CgroupTree(
    {
      cgroups: edge.cgroups,
      pods: { active: deps.active },
      node: edge.resources,
      events: deps.cluster.events,
      clock,
      log: log.child({ component: 'cgroups' }),
    },
    {
      driver: edge.cgroupDriver,
      root: config.cgroupRoot || '/',
      perQos: config.cgroupsPerQOS,
      enforce: config.enforceNodeAllocatable,
      systemReservedCgroup: config.systemReservedCgroup,
      kubeReservedCgroup: config.kubeReservedCgroup,
      tiers: {
        memoryReservation: memoryReservation(base, edge),
        reservedPercent: gates.enabled('QOSReserved') ? percentOf(config.qosReserved['memory']) : undefined,
      },
    },
  );
  if (gates.enabled('MemoryQoS')) memoryQosMetrics(registry, tree);
  return tree;
};
