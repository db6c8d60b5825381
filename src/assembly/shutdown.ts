// Graceful node shutdown: logind in, readiness and admission told, pods out.
import { join } from 'node:path';
import type { Pod } from '../core/pod.ts';
import type { Runnable } from '../lib/supervise.ts';
import { endForShutdown } from '../pods/end-for-shutdown.ts';
import { shutdownGroups } from '../shutdown/groups.ts';
import { Logind } from '../shutdown/logind.ts';
import { ShutdownManager } from '../shutdown/shutdown-manager.ts';
import { ShutdownTimes } from '../shutdown/shutdown-times.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { PodLife } from './pod-life.ts';
import type { Volumes } from './volumes.ts';

export type ShutdownParts = {
  readonly base: Foundation;
  readonly cluster: ClusterPort;
  readonly active: () => readonly Pod[];
  readonly life: PodLife;
  readonly volumes: Volumes;
};

export type Shutdown = {
  readonly shuttingDown: () => boolean;
  /** None where shutdowns are not to be held up. */
  readonly parts: readonly Runnable[];
};

export function buildShutdown(deps: ShutdownParts): Shutdown {
  const manager = buildManager(deps);
  return { shuttingDown: () => manager?.shuttingDown === true, parts: manager === undefined ? [] : [manager] };
}

function buildManager({ base, cluster, active, life, volumes }: ShutdownParts): ShutdownManager | undefined {
  const { clock, registry, flags } = base;
  const groups = base.gates.enabled('GracefulNodeShutdown') ? shutdownGroups(base.config) : [];
  const times = new ShutdownTimes(registry, join(flags.rootDir, 'graceful_node_shutdown_state'));
  if (groups.length === 0) return undefined;
  const ending = { workers: life.workers, volumes: volumes.manager, clock };
  return new ShutdownManager(
    {
      source: logindOf(base),
      pods: {
        active,
        end: (pod, graceSeconds, signal) => endForShutdown(ending, pod, graceSeconds, signal),
      },
      events: cluster.events,
      onChange: () => cluster.nodeChanged(),
      times,
      infra: { clock, log: base.log.child({ component: 'shutdown' }) },
    },
    groups,
  );
}

function logindOf({ clock, systemBus: { bus, units, callForFile } }: Foundation): Logind {
  const killUnit = (unit: string, number: number, signal: AbortSignal): Promise<void> =>
    units.kill(unit, number, signal);
  return new Logind({ bus, callForFile, killUnit, clock });
}
