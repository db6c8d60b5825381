// `--runonce`: starts the pods of the local sources, waits until each of them runs or has ended, reports them and is done.
// What was started keeps running without the agent.
import { podKey, uidOf, type Pod, type PodStatus } from '../core/pod.ts';
import type { PodUid } from '../core/ids.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';

export type RunOnceDeps = {
  readonly sourcesReady: () => boolean;
  readonly pods: () => readonly Pod[];
  readonly statusOf: (uid: PodUid) => PodStatus | undefined;
  readonly clock: Clock;
  readonly log: Logger;
};

const LOOK_MS = 100;
/** A pod that does not run by then is reported as failed. */
const PATIENCE_MS = 120_000;

type Outcome = 'running' | 'succeeded' | 'failed' | undefined;

function outcomeOf(pod: Pod, status: PodStatus | undefined): Outcome {
  if (status?.phase === 'Succeeded') return 'succeeded';
  if (status?.phase === 'Failed') return 'failed';
  const running = (status?.containerStatuses ?? []).filter((c) => c.state.running !== undefined);
  return status?.phase === 'Running' && running.length === pod.spec.containers.length ? 'running' : undefined;
}

/** Resolves when every pod runs or has succeeded; rejects naming those that did not. */
export async function waitForPods(
  { sourcesReady, pods, statusOf, clock, log }: RunOnceDeps,
  signal: AbortSignal,
): Promise<void> {
  const end = clock.monotonic() + PATIENCE_MS;
  const done = new Map<PodUid, Outcome>();
  for (;;) {
    const all = pods();
    for (const pod of all) {
      const uid = uidOf(pod);
      const outcome = done.has(uid) ? undefined : outcomeOf(pod, statusOf(uid));
      if (outcome === undefined) continue;
      done.set(uid, outcome);
      log.info('pod started once', { pod: podKey(pod), outcome });
    }
    if (sourcesReady() && all.every((pod) => done.has(uidOf(pod)))) return report(all, done);
    if (clock.monotonic() >= end) return report(all, done);
    await clock.sleep(LOOK_MS, signal);
    signal.throwIfAborted();
  }
}

function report(all: readonly Pod[], done: ReadonlyMap<PodUid, Outcome>): void {
  const bad = all.filter((pod) => (done.get(uidOf(pod)) ?? 'failed') === 'failed').map(podKey);
  if (bad.length > 0) throw new KubeletError('internal', `error running pods: ${bad.join(', ')}`);
}
