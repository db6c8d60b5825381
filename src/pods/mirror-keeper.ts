// Keeps the mirrors of static pods right without anybody waiting for the API server: woken by the pods' syncs, tried again
// until it worked or the pod is gone.
import type { PodUid } from '../core/ids.ts';
import { isStaticPod, podKey, uidOf, type Pod } from '../core/pod.ts';
import { isUnreachable } from '../kube/api-error.ts';
import { aborted } from '../lib/abort.ts';
import { Backoff } from '../lib/backoff.ts';
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

/** A server that refuses a mirror, for want of its namespace or for good, is asked ever more rarely. */
const REFUSED = { baseMs: 2000, maxMs: 60_000 };
/** One that does not answer may be back any moment: trying costs it nothing. */
const UNREACHABLE_RETRY_MS = 2000;
const AT_ONCE = 4;

type Retry = { readonly backoff: Backoff; timer: Timer | undefined };

export class MirrorKeeper implements Runnable {
  readonly name = 'mirror-pods';
  readonly #deps: MirrorKeeperDeps;
  readonly #retries = new Map<PodUid, Retry>();
  readonly #runner = new KeyedRunner<PodUid>({ work: (uid) => this.#reconcile(uid), concurrency: AT_ONCE });
  #signal: AbortSignal | undefined;
  #nodeKnown = false;

  constructor(deps: MirrorKeeperDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    await aborted(signal);
    for (const { timer } of this.#retries.values()) timer?.cancel();
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
    const { mirrors, desired, log } = this.#deps;
    const pod = desired.get(uid);
    const signal = this.#signal;
    this.#retries.get(uid)?.timer?.cancel();
    if (pod === undefined || signal === undefined || signal.aborted) return void this.#retries.delete(uid);
    try {
      await mirrors.reconcile(pod, signal);
      this.#retries.delete(uid);
    } catch (err) {
      if (signal.aborted) return;
      log.debug('mirror pod is not as it should be yet', { pod: podKey(pod), err });
      this.#retryLater(uid, err);
    }
  }

  #retryLater(uid: PodUid, err: unknown): void {
    const { clock } = this.#deps;
    const retry = this.#retries.get(uid) ?? { backoff: new Backoff(REFUSED), timer: undefined };
    const ms = isUnreachable(err) ? UNREACHABLE_RETRY_MS : retry.backoff.failed(clock.monotonic());
    retry.timer = clock.after(ms, () => this.#runner.wake(uid));
    this.#retries.set(uid, retry);
  }
}
