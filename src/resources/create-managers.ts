// Fits the managers that pin together: CPU, memory and topology manager, with the providers that others add.
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import type { CriRuntime } from '../cri/services.ts';
import { tryParseCpuSet } from '../core/cpuset.ts';
import type { PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { MachineTopology } from '../host/topology/machine-topology.ts';
import type { Runnable } from '../lib/supervise.ts';
import { chooseCpuPolicy } from './cpu/choose-policy.ts';
import { CpuManager } from './cpu/cpu-manager.ts';
import { alignmentMetrics, allocationMetrics, CpuMetrics } from './cpu/cpu-metrics.ts';
import { chooseMemoryPolicy } from './memory/choose-policy.ts';
import { MemoryManager, memoryMetrics } from './memory/memory-manager.ts';
import { PinningHook } from './pinning-hook.ts';
import type { HintProvider } from './topology/hint-provider.ts';
import type { ManagedPods } from './topology/stale-entries.ts';
import { TopologyManager, topologyMetrics } from './topology/topology-manager.ts';
import { topologySettings } from './topology/topology-options.ts';
import type { NodeResources } from './node-resources.ts';

export type ContainerManagers = {
  readonly cpu: CpuManager;
  readonly memory: MemoryManager;
  readonly hook: PinningHook;
  readonly machine: MachineTopology;
  readonly parts: readonly Runnable[];
};

export type ContainerManagersDeps = {
  readonly machine: MachineTopology;
  readonly resources: NodeResources;
  readonly observed: { get(uid: PodUid): PodSnapshot | undefined };
  readonly runtime: Pick<CriRuntime, 'updateContainerResources'>;
  /** Asked before the CPU and the memory manager. */
  readonly providers: readonly HintProvider[];
  /** Pods that may hold something: all that are not over. */
  readonly holders: () => readonly Pod[];
  readonly sourcesReady: () => boolean;
};

/** Fails when policies, options, reservations or what an earlier run left do not fit this machine. */
export async function createContainerManagers(
  env: Environment,
  deps: ContainerManagersDeps,
): Promise<ContainerManagers> {
  const { machine, resources } = deps;
  const { config, registry, clock, log, flags } = env;
  const podLevelManagers = hasPodLevelManagers(env);
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
  const pods = managedPods(deps);
  const cpu = createCpuManager(env, deps, pods, new CpuMetrics(registry, alignment, allocation));
  const memory = new MemoryManager(
    { clock, log: log.child({ component: 'memory-manager' }), pods, metrics: memoryMetrics(registry, allocation) },
    {
      policy: chooseMemoryPolicy(machine.nodes, {
        policy: config.memoryManagerPolicy,
        reservations: config.reservedMemory,
        reservedOfNode: resources.reserved(),
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

/** Pod-level managers build on pod-level resources. */
export const hasPodLevelManagers = ({ gates }: Pick<Environment, 'gates'>): boolean =>
  gates.enabled('PodLevelResourceManagers') && gates.enabled('PodLevelResources');

const managedPods = ({ holders, sourcesReady, observed }: ContainerManagersDeps): ManagedPods => ({
  unfinished: holders,
  sourcesReady,
  runningId: (uid, container) =>
    observed.get(uid)?.containers.find((c) => c.name === container && c.state === 'running')?.id,
});

function createCpuManager(
  env: Environment,
  { machine, resources, runtime }: ContainerManagersDeps,
  pods: ManagedPods,
  metrics: CpuMetrics,
): CpuManager {
  const { config, gates, registry, clock, log, flags } = env;
  const podLevelManagers = hasPodLevelManagers(env);
  const policy = chooseCpuPolicy(machine, {
    policy: config.cpuManagerPolicy,
    options: config.cpuManagerPolicyOptions,
    gates: {
      alpha: gates.enabled('CPUManagerPolicyAlphaOptions'),
      beta: gates.enabled('CPUManagerPolicyBetaOptions'),
    },
    reservation: resources.reserved().get('cpu'),
    reservedCpus: tryParseCpuSet(config.reservedSystemCPUs) ?? new Set(),
    topologyPolicy: config.topologyManagerPolicy,
    podLevelManagers,
  });
  const manager = new CpuManager(
    {
      clock,
      log: log.child({ component: 'cpu-manager' }),
      pods,
      cpusets: {
        setCpus: async (containerId, cpus, signal) => {
          await runtime.updateContainerResources({ containerId, linux: { cpusetCpus: cpus } }, signal);
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
