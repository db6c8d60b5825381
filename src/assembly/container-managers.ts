// The managers that pin: CPU, memory and topology manager, with the providers that others add.
import { join } from 'node:path';
import { tryParseCpuSet } from '../core/cpuset.ts';
import type { Pod } from '../core/pod.ts';
import type { MachineTopology } from '../host/topology/machine-topology.ts';
import type { Runnable } from '../lib/supervise.ts';
import { chooseCpuPolicy } from '../resources/cpu/choose-policy.ts';
import { CpuManager } from '../resources/cpu/cpu-manager.ts';
import { alignmentMetrics, allocationMetrics, CpuMetrics } from '../resources/cpu/cpu-metrics.ts';
import { chooseMemoryPolicy } from '../resources/memory/choose-policy.ts';
import { MemoryManager, memoryMetrics } from '../resources/memory/memory-manager.ts';
import { PinningHook } from '../resources/pinning-hook.ts';
import type { HintProvider } from '../resources/topology/hint-provider.ts';
import { TopologyManager, topologyMetrics } from '../resources/topology/topology-manager.ts';
import { topologySettings } from '../resources/topology/topology-options.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export type ContainerManagers = {
  readonly cpu: CpuManager;
  readonly memory: MemoryManager;
  readonly hook: PinningHook;
  readonly machine: MachineTopology;
  readonly parts: readonly Runnable[];
};

export type ContainerManagersDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly machine: MachineTopology;
  /** Asked before the CPU and the memory manager. */
  readonly providers: readonly HintProvider[];
  /** Pods that may hold something: all that are not over. */
  readonly holders: () => readonly Pod[];
  readonly sourcesReady: () => boolean;
};

/** Fails when policies, options, reservations or what an earlier run left do not fit this machine. */
export async function buildContainerManagers(deps: ContainerManagersDeps): Promise<ContainerManagers> {
  const { base, edge, machine, holders, sourcesReady } = deps;
  const { config, gates, registry, clock, log, flags } = base;
  const podLevelManagers = gates.enabled('PodLevelResourceManagers') && gates.enabled('PodLevelResources');
  const settings = topologySettings(
    {
      policy: config.topologyManagerPolicy,
      scope: config.topologyManagerScope,
      options: config.topologyManagerPolicyOptions,
    },
    machine.nodes,
  );
  const alignment = alignmentMetrics(registry);
  const allocation = podLevelManagers ? allocationMetrics(registry) : undefined;
  const pods = { unfinished: holders, sourcesReady };
  const cpu = buildCpuManager(deps, machine, podLevelManagers, new CpuMetrics(registry, alignment, allocation));
  const memory = new MemoryManager(
    { clock, log: log.child({ component: 'memory-manager' }), pods, metrics: memoryMetrics(registry, allocation) },
    {
      policy: chooseMemoryPolicy(machine.nodes, {
        policy: config.memoryManagerPolicy,
        reservations: config.reservedMemory,
        reservedOfNode: edge.resources.reserved(),
        podLevelManagers,
      }),
      stateFile: join(flags.rootDir, 'memory_manager_state'),
      podLevelManagers,
    },
  );
  const topology = new TopologyManager(
    { providers: [...deps.providers, cpu, memory], clock, metrics: topologyMetrics(registry, alignment) },
    { ...settings, podLevelManagers },
  );
  await Promise.all([cpu.load(), memory.load()]);
  return { cpu, memory, hook: new PinningHook({ cpu, memory, topology }), machine, parts: [cpu, memory] };
}

function buildCpuManager(
  { base, edge, holders, sourcesReady }: ContainerManagersDeps,
  machine: MachineTopology,
  podLevelManagers: boolean,
  metrics: CpuMetrics,
): CpuManager {
  const { config, gates, registry, clock, log, flags } = base;
  const policy = chooseCpuPolicy(machine, {
    policy: config.cpuManagerPolicy,
    options: config.cpuManagerPolicyOptions,
    gates: {
      alpha: gates.enabled('CPUManagerPolicyAlphaOptions'),
      beta: gates.enabled('CPUManagerPolicyBetaOptions'),
    },
    reservation: edge.resources.reserved().get('cpu'),
    reservedCpus: tryParseCpuSet(config.reservedSystemCPUs) ?? new Set(),
    topologyPolicy: config.topologyManagerPolicy,
    podLevelManagers,
  });
  const manager = new CpuManager(
    {
      clock,
      log: log.child({ component: 'cpu-manager' }),
      pods: { unfinished: holders, sourcesReady },
      runningId: (uid, container) =>
        edge.observer.cache.get(uid)?.containers.find((c) => c.name === container && c.state === 'running')?.id,
      cpusets: {
        setCpus: async (containerId, cpus, signal) => {
          await edge.cri.runtime.updateContainerResources({ containerId, linux: { cpusetCpus: cpus } }, signal);
        },
      },
      metrics,
    },
    {
      policy,
      stateFile: join(flags.rootDir, 'cpu_manager_state'),
      reconcileEveryMs: config.cpuManagerReconcilePeriodMs,
      podLevelManagers,
      liftQuota: gates.enabled('DisableCPUQuotaWithExclusiveCPUs'),
    },
  );
  metrics.observe(registry, policy, () => manager.state);
  return manager;
}
