// Evicts the pods that make room for a critical one, all at once, and waits for them, but not for ever: a victim that
// outlasts its grace period goes on ending by itself, and the critical pod is admitted all the same, as upstream does it.
import { podKey, type Pod } from '../core/pod.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { PREEMPTED } from './preemption.ts';

export type EvictVictimsDeps = {
  /** Settles when the pod's containers are stopped; rejects when they did not stop in time. */
  readonly evict: (pod: Pod, why: typeof PREEMPTED, signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
};

/** The longest that other new pods wait behind a preemption. */
const LONGEST_MS = 120_000;

export async function evictVictims(
  { evict, clock, log }: EvictVictimsDeps,
  victims: readonly Pod[],
  signal: AbortSignal,
): Promise<void> {
  const one = async (victim: Pod): Promise<void> => {
    try {
      await withDeadline(clock, signal, LONGEST_MS, (own) => evict(victim, PREEMPTED, own));
    } catch (err) {
      signal.throwIfAborted();
      log.error('pod was preempted but has not stopped yet', { pod: podKey(victim), err });
    }
  };
  await Promise.all(victims.map(one));
}
