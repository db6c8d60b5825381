// A static pod that runs already waits a moment for its mirror pod, which tells how it was under the previous kubelet.
// Only once, at the start of the agent, and only as long as the API server may still answer.
import type { PodUid } from '../core/ids.ts';
import { isStaticPod, uidOf, type Pod } from '../core/pod.ts';
import { isAlive, type PodSnapshot } from '../core/snapshot.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';

export type AwaitMirrorDeps = {
  readonly observed: { get(uid: PodUid): PodSnapshot | undefined };
  /** Resolves once the API server's pods were read (at once without one). */
  readonly podsRead: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
};

const LONGEST_MS = 3000;

export class AwaitMirror {
  readonly #deps: AwaitMirrorDeps;
  readonly #until: number;

  constructor(deps: AwaitMirrorDeps) {
    this.#deps = deps;
    this.#until = deps.clock.monotonic() + LONGEST_MS;
  }

  async before(pod: Pod, signal: AbortSignal): Promise<void> {
    const { clock, observed, podsRead } = this.#deps;
    const leftMs = this.#until - clock.monotonic();
    if (leftMs <= 0 || !isStaticPod(pod) || !isAlive(observed.get(uidOf(pod)))) return;
    try {
      await withDeadline(clock, signal, leftMs, podsRead);
    } catch {
      // The API server is slow or away: the pod goes on with what is known here.
      signal.throwIfAborted();
    }
  }
}
