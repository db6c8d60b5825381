// Keeps the mirrors of static pods right without anybody waiting for the API server: woken by the pods' syncs, tried again
// until it worked or the pod is gone.
import type { PodUid } from '../core/ids.ts';
import { isStaticPod, podKey, uidOf, type Pod } from '../core/pod.ts';
import { aborted } from '../lib/abort.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { KeyedRunner } from '../lib/keyed-runner.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';

export type MirrorKeeperDeps = {
  readonly mirrors: { reconcile(pod: Pod, signal: AbortSignal): Promise<void> };
  readonly desired: { get(uid: PodUid): Pod | undefined; all(): readonly Pod[] };
  readonly clock: Clock;
  readonly log: Logger;
};

const RETRY_MS = 2000;
const AT_ONCE = 4;

export class MirrorKeeper implements Runnable {
  readonly name = 'mirror-pods';
  readonly #deps: MirrorKeeperDeps;
  readonly #retries = new Map<PodUid, Timer>();
  readonly #runner = new KeyedRunner<PodUid>({ work: (uid) => this.#reconcile(uid), concurrency: AT_ONCE });
  #signal: AbortSignal | undefined;
  #nodeKnown = false;

  constructor(deps: MirrorKeeperDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    await aborted(signal);
    for (const timer of this.#retries.values()) timer.cancel();
    await this.#runner.stop();
  }

  /** With the first sight of our own Node static pods get their mirrors: before it there was nobody to own them. */
  nodeSeen(node: object | undefined): void {
    if (this.#nodeKnown || node === undefined) return;
    this.#nodeKnown = true;
    for (const pod of this.#deps.desired.all()) if (isStaticPod(pod)) this.keep(pod);
  }

  keep(pod: Pod): void {
    this.#runner.wake(uidOf(pod));
  }

  async #reconcile(uid: PodUid): Promise<void> {
    const { mirrors, desired, clock, log } = this.#deps;
    const pod = desired.get(uid);
    const signal = this.#signal;
    this.#retries.get(uid)?.cancel();
    this.#retries.delete(uid);
    if (pod === undefined || signal === undefined || signal.aborted) return;
    try {
      await mirrors.reconcile(pod, signal);
    } catch (err) {
      if (signal.aborted) return;
      log.debug('mirror pod is not as it should be yet', { pod: podKey(pod), err });
      this.#retries.set(
        uid,
        clock.after(RETRY_MS, () => this.#runner.wake(uid)),
      );
    }
  }
}
