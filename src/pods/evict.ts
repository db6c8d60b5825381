// Takes a pod off the node for the node's own reasons (preemption, eviction, shutdown) and waits until it has stopped.
import type { EventRecorder } from '../core/events.ts';
import { uidOf, type Pod, type PodCondition, type PodStatus } from '../core/pod.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import type { PodWorkers } from './pod-workers.ts';

export type Eviction = {
  readonly reason: string;
  readonly message: string;
  readonly condition?: Pick<PodCondition, 'type' | 'status' | 'reason' | 'message'>;
  /** Overrides the pod's own grace period. */
  readonly graceSeconds?: number;
  readonly annotations?: Readonly<Record<string, string>>;
};

export type EvictDeps = { readonly workers: PodWorkers; readonly events: EventRecorder; readonly clock: Clock };

const MIN_WAIT_MS = 10_000;

/** Rejects with `timeout waiting to kill pod` when the runtime did not stop it in one and a half times its grace. */
export async function evictPod(
  { workers, events, clock }: EvictDeps,
  pod: Pod,
  why: Eviction,
  signal: AbortSignal,
): Promise<void> {
  const uid = uidOf(pod);
  const options = why.annotations === undefined ? {} : { annotations: why.annotations };
  events.pod(pod, 'Warning', why.reason, why.message, options);
  const grace = why.graceSeconds ?? pod.spec.terminationGracePeriodSeconds ?? 0;
  workers.stop(uid, {
    evicted: true,
    ...(why.graceSeconds === undefined ? {} : { graceSeconds: why.graceSeconds }),
    status: (status) => evictedStatus(status, why),
  });
  try {
    await withDeadline(clock, signal, Math.max(MIN_WAIT_MS, grace * 1500), (own) => workers.stopped(uid, own));
  } catch (err) {
    if (isFault(err, 'deadline'))
      events.pod(
        pod,
        'Warning',
        'ExceededGracePeriod',
        'Container runtime did not kill the pod within specified grace period.',
      );
    throw err;
  }
}

/** The status of a pod that ended for the node's reasons. */
export function evictedStatus(status: PodStatus, { reason, message, condition }: Eviction): PodStatus {
  const rest = (status.conditions ?? []).filter((c) => c.type !== condition?.type);
  const at = rest.findIndex((c) => c.type === 'PodReadyToStartContainers');
  const before = at < 0 ? rest.length : at;
  const { observedGeneration } = status;
  const seen = observedGeneration === undefined ? {} : { observedGeneration };
  const added = condition === undefined ? [] : [{ ...condition, ...seen, lastProbeTime: null }];
  return {
    ...status,
    phase: 'Failed',
    reason,
    message,
    conditions: [...rest.slice(0, before), ...added, ...rest.slice(before)],
  };
}
