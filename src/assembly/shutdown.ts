// Graceful node shutdown: logind in, readiness and admission told, pods out.
import { join } from 'node:path';
import { uidOf, type Pod, type PodStatus } from '../core/pod.ts';
import type { Runnable } from '../lib/supervise.ts';
import { evictedStatus } from '../pods/evict.ts';
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

const UNMOUNT_POLL_MS = 100;
const MESSAGE = 'Pod was terminated in response to imminent node shutdown.';
const TERMINATED = {
  reason: 'Terminated',
  message: MESSAGE,
  condition: { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message: MESSAGE },
} as const;

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
  return new ShutdownManager(
    {
      source: new Logind(clock),
      pods: {
        active,
        end: async (pod, graceSeconds, signal) => {
          const uid = uidOf(pod);
          life.workers.stop(uid, { graceSeconds, status: terminatedStatus });
          await life.workers.stopped(uid, signal);
          while (volumes.manager.mountsOf(uid).size > 0) {
            signal.throwIfAborted();
            await clock.sleep(UNMOUNT_POLL_MS, signal);
          }
        },
      },
      events: cluster.events,
      onChange: () => cluster.nodeChanged(),
      times,
      infra: { clock, log: base.log.child({ component: 'shutdown' }) },
    },
    groups,
  );
}

const terminatedStatus = (status: PodStatus): PodStatus => ({
  ...evictedStatus(status, TERMINATED),
  ...(status.phase === 'Succeeded' ? { phase: status.phase } : {}),
});
