// Fits the parts of this folder to the configuration: nothing where shutdowns are not to be held up.
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import type { SystemBus } from '../host/systemd/system-bus.ts';
import type { Runnable } from '../lib/supervise.ts';
import { shutdownGroups, type ShutdownGroup } from './groups.ts';
import { Logind } from './logind.ts';
import { ShutdownManager, type KeptTimes, type ShutdownDeps } from './shutdown-manager.ts';
import { ShutdownTimes } from './shutdown-times.ts';

export type Shutdown = {
  readonly shuttingDown: () => boolean;
  /** None where shutdowns are not to be held up. */
  readonly parts: readonly Runnable[];
};

export function createShutdown(
  env: Environment,
  deps: Pick<ShutdownDeps, 'pods' | 'events' | 'onChange'>,
  { bus, units, callForFile }: SystemBus,
): Shutdown {
  const { clock } = env;
  const groups = configuredGroups(env);
  const times = keptTimes(env);
  if (groups.length === 0) return { shuttingDown: () => false, parts: [] };
  const infra = { clock, log: env.log.child({ component: 'shutdown' }) };
  const killUnit = (unit: string, number: number, signal: AbortSignal): Promise<void> =>
    units.kill(unit, number, signal);
  const source = new Logind({ bus, callForFile, killUnit, clock });
  const manager = new ShutdownManager({ ...deps, source, times, infra }, groups);
  return { shuttingDown: () => manager.shuttingDown, parts: [manager] };
}

const NOT_KEPT: KeptTimes = {
  load: () => Promise.resolve(),
  started: () => Promise.resolve(),
  ended: () => Promise.resolve(),
};

/** The metrics are there in any case; they and the file say something only with the gate of the priorities. */
export function keptTimes({ gates, registry, flags }: Pick<Environment, 'gates' | 'registry' | 'flags'>): KeptTimes {
  const times = new ShutdownTimes(registry, join(flags.rootDir, 'graceful_node_shutdown_state'));
  return gates.enabled('GracefulNodeShutdownBasedOnPodPriority') ? times : NOT_KEPT;
}

export const configuredGroups = ({ config, gates }: Pick<Environment, 'config' | 'gates'>): readonly ShutdownGroup[] =>
  gates.enabled('GracefulNodeShutdown') ? shutdownGroups(config) : [];
