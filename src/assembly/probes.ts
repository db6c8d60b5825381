// Probes, fitted with the runtime's exec and the pods' statuses.
import type { PodUid } from '../core/ids.ts';
import { nanosToMs } from '../core/time.ts';
import type { PodStore } from '../pods/pod-store.ts';
import { ProbeManager } from '../probes/probe-manager.ts';
import { ProbeMetrics } from '../probes/probe-metrics.ts';
import { containerProber } from '../probes/probers.ts';
import type { StatusStore } from '../status/status-store.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export function buildProbes(
  { clock, log, probeRegistry }: Foundation,
  edge: RuntimeEdge,
  deps: {
    readonly cluster: ClusterPort;
    readonly store: PodStore;
    readonly statuses: StatusStore;
    readonly probed: (uid: PodUid) => void;
  },
): ProbeManager {
  const { cluster, store, statuses, probed } = deps;
  const prober = containerProber(clock, (containerId, cmd, timeoutSeconds, signal) =>
    edge.cri.runtime.execSync({ containerId, cmd, timeout: timeoutSeconds }, signal),
  );
  return new ProbeManager({
    pods: {
      pod: (uid) => store.get(uid),
      status: (uid) => statuses.statusOf(uid),
      startedAt: (uid, id) => {
        const container = edge.observer.cache.get(uid)?.containers.find((c) => c.id === id);
        return container === undefined || container.startedAt === 0n ? undefined : nanosToMs(container.startedAt);
      },
    },
    prober,
    onResult: (change) => probed(change.uid),
    events: cluster.events,
    clock,
    log: log.child({ component: 'probes' }),
    metrics: new ProbeMetrics(probeRegistry),
  });
}
