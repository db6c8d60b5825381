// Fits the parts of this folder together: the manager, with a prober that reaches containers over the network and by exec.
import type { Environment } from '../config/environment.ts';
import type { EventRecorder } from '../core/events.ts';
import type { ContainerId, PodUid } from '../core/ids.ts';
import type { Pod, PodStatus } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { nanosToMs } from '../core/time.ts';
import type { CriRuntime } from '../cri/services.ts';
import type { Registry } from '../lib/metrics.ts';
import { ProbeManager } from './probe-manager.ts';
import { ProbeMetrics } from './probe-metrics.ts';
import { containerProber } from './probers.ts';

export type ProbesDeps = {
  readonly runtime: Pick<CriRuntime, 'execSyncBriefly'>;
  readonly desired: { get(uid: PodUid): Pod | undefined };
  readonly statuses: { statusOf(uid: PodUid): PodStatus | undefined };
  readonly observed: { get(uid: PodUid): PodSnapshot | undefined };
  readonly events: EventRecorder;
  /** Served apart, on /metrics/probes. */
  readonly probeRegistry: Registry;
  /** There is something new to say about the pod. */
  readonly probed: (uid: PodUid) => void;
};

export function createProbes({ clock, log }: Pick<Environment, 'clock' | 'log'>, deps: ProbesDeps): ProbeManager {
  const { runtime, desired, statuses, observed, events, probed } = deps;
  const prober = containerProber(clock, (containerId, cmd, timeoutSeconds, signal) =>
    runtime.execSyncBriefly({ containerId, cmd, timeout: timeoutSeconds }, signal),
  );
  return new ProbeManager({
    pods: {
      pod: (uid) => desired.get(uid),
      status: (uid) => statuses.statusOf(uid),
      startedAt: (uid, id) => startedAtMs(observed.get(uid), id),
    },
    prober,
    onResult: (change) => probed(change.uid),
    events,
    clock,
    log: log.child({ component: 'probes' }),
    metrics: new ProbeMetrics(deps.probeRegistry),
  });
}

/** Undefined for a container that was not seen, or not started. */
export function startedAtMs(snapshot: PodSnapshot | undefined, id: ContainerId): number | undefined {
  const container = snapshot?.containers.find((c) => c.id === id);
  return container === undefined || container.startedAt === 0n ? undefined : nanosToMs(container.startedAt);
}
