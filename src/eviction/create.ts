// Fits the parts of this folder to the configuration and the runtime's filesystems.
import { stat } from 'node:fs/promises';
import type { Environment } from '../config/environment.ts';
import { DiskLayouts, type DiskLayoutsDeps } from './disk-layout.ts';
import { EvictionManager, type EvictionDeps, type EvictionOptions } from './eviction-manager.ts';
import { parseThresholds } from './thresholds.ts';

export type CreateEvictionDeps = Omit<EvictionDeps, 'layout' | 'infra'> & {
  readonly imageFsInfo: DiskLayoutsDeps['imageFsInfo'];
};

export function createEviction(env: Environment, deps: CreateEvictionDeps): EvictionManager {
  const { clock, flags, registry } = env;
  const { imageFsInfo, ...rest } = deps;
  const log = env.log.child({ component: 'eviction' });
  const deviceOf = async (path: string): Promise<number> => (await stat(path)).dev;
  const layouts = new DiskLayouts({ imageFsInfo, deviceOf, clock, log }, flags.rootDir);
  return new EvictionManager(
    { ...rest, layout: (signal) => layouts.read(signal), infra: { clock, log, registry } },
    evictionOptions(env),
  );
}

const evictionOptions = ({ config }: Pick<Environment, 'config'>): EvictionOptions => ({
  thresholds: parseThresholds(config, config.enforceNodeAllocatable.includes('pods')),
  transitionMs: config.evictionPressureTransitionPeriodMs,
  maxPodGraceSeconds: config.evictionMaxPodGracePeriod,
  localStorageLimits: config.localStorageCapacityIsolation,
});
