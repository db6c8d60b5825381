// Fits the parts of this folder to the configuration and the runtime's filesystems.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import { cgroupPath, kubepodsName, parseCgroupRoot, type CgroupDriver } from '../host/cgroups/cgroup-names.ts';
import { detectCgroups } from '../host/cgroups/layout.ts';
import { watchMemoryUse } from '../host/cgroups/memory-crossing.ts';
import { DiskLayouts, type DiskLayoutsDeps } from './disk-layout.ts';
import { EvictionManager, type EvictionDeps, type EvictionOptions } from './eviction-manager.ts';
import { MemoryNotifier } from './memory-notifier.ts';
import { parseThresholds } from './thresholds.ts';

export type CreateEvictionDeps = Omit<EvictionDeps, 'layout' | 'infra' | 'notifier'> & {
  readonly cgroupDriver: CgroupDriver;
  readonly imageFsInfo: DiskLayoutsDeps['imageFsInfo'];
};

export async function createEviction(env: Environment, deps: CreateEvictionDeps): Promise<EvictionManager> {
  const { clock, flags, registry } = env;
  const { cgroupDriver, imageFsInfo, ...rest } = deps;
  const log = env.log.child({ component: 'eviction' });
  const deviceOf = async (path: string): Promise<number> => (await stat(path)).dev;
  const layouts = new DiskLayouts({ imageFsInfo, deviceOf, clock, log }, flags.rootDir);
  const notifier = await memoryNotifier(env, cgroupDriver);
  return new EvictionManager(
    {
      ...rest,
      ...(notifier !== undefined && { notifier }),
      layout: (signal) => layouts.read(signal),
      infra: { clock, log, registry },
    },
    evictionOptions(env),
  );
}

/** The kernel tells of memory use on cgroup v1 only. */
async function memoryNotifier(
  { config, clock, log }: Environment,
  driver: CgroupDriver,
): Promise<MemoryNotifier | undefined> {
  const layout = config.kernelMemcgNotification ? await detectCgroups() : undefined;
  const hierarchies = layout?.version === 1 ? layout.hierarchies : [];
  const root = hierarchies.find(({ controllers }) => controllers.includes('memory'))?.mountPoint;
  if (root === undefined) return undefined;
  const pods = cgroupPath(kubepodsName(parseCgroupRoot(config.cgroupRoot, driver)), driver);
  const dirs = { 'memory.available': root, 'allocatableMemory.available': join(root, pods) };
  return new MemoryNotifier({
    clock,
    log: log.child({ component: 'eviction' }),
    watch: (signal, bytes) => watchMemoryUse(dirs[signal], bytes),
  });
}

/** Where eviction is no part of what is kept from pods, they are not evicted for what they use in all either. */
export const evictionOptions = ({ config, flags }: Pick<Environment, 'config' | 'flags'>): EvictionOptions => ({
  thresholds: parseThresholds(
    config,
    config.enforceNodeAllocatable.includes('pods') && !flags.experimentalAllocatableIgnoreEviction,
  ),
  transitionMs: config.evictionPressureTransitionPeriodMs,
  maxPodGraceSeconds: config.evictionMaxPodGracePeriod,
  localStorageLimits: config.localStorageCapacityIsolation,
});
