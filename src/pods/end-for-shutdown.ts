// Ends a pod because the machine goes down, and waits until it has stopped and its volumes are unmounted.
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod, type PodStatus } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import { evictedStatus } from './evict.ts';
import type { PodWorkers } from './pod-workers.ts';

export type EndForShutdownDeps = {
  readonly workers: Pick<PodWorkers, 'stop' | 'stopped'>;
  readonly volumes: { mountsOf(uid: PodUid): { readonly size: number } };
  readonly clock: Clock;
};

const UNMOUNT_POLL_MS = 100;
const MESSAGE = 'Pod was terminated in response to imminent node shutdown.';
const TERMINATED = {
  reason: 'Terminated',
  message: MESSAGE,
  condition: { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message: MESSAGE },
} as const;

export async function endForShutdown(
  { workers, volumes, clock }: EndForShutdownDeps,
  pod: Pod,
  graceSeconds: number,
  signal: AbortSignal,
): Promise<void> {
  const uid = uidOf(pod);
  workers.stop(uid, { graceSeconds, status: shutdownStatus });
  await workers.stopped(uid, signal);
  while (volumes.mountsOf(uid).size > 0) {
    signal.throwIfAborted();
    await clock.sleep(UNMOUNT_POLL_MS, signal);
  }
}

/** A pod that had succeeded before it was asked to stop stays so. */
export const shutdownStatus = (status: PodStatus): PodStatus => ({
  ...evictedStatus(status, TERMINATED),
  ...(status.phase === 'Succeeded' ? { phase: status.phase } : {}),
});
