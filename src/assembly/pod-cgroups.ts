// Cgroups: the tree above the pods, and the pods' own.
import type { Pod } from '../core/pod.ts';
import { CgroupTree } from '../resources/cgroup-tree.ts';
import type { ContainerManagerHooks } from '../resources/container-manager-hook.ts';
import { PodCgroups } from '../resources/pod-cgroups.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export const buildPodCgroups = (
  { clock, config, registry }: Foundation,
  edge: RuntimeEdge,
  hooks: ContainerManagerHooks,
): PodCgroups =>
  new PodCgroups(
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
      cpuCfsQuota: config.cpuCFSQuota,
      cpuPeriodUs: Math.round(config.cpuCFSQuotaPeriodMs * 1000),
      podPidsLimit: config.podPidsLimit,
      hugePageSizes: edge.resources.machine.hugePages.map((pool) => pool.sizeBytes),
    },
  );

export const buildCgroupTree = (
  { clock, config, log }: Foundation,
  edge: RuntimeEdge,
  deps: { readonly cluster: ClusterPort; readonly active: () => readonly Pod[] },
): CgroupTree =>
  new CgroupTree(
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
      enforce: config.enforceNodeAllocatable,
      systemReservedCgroup: config.systemReservedCgroup,
      kubeReservedCgroup: config.kubeReservedCgroup,
    },
  );
