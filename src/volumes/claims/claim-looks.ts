// When the claims of mounted volumes are read again, to see whether they have grown. Nodes may get claims but not watch
// them, so a sync of the pod is the occasion, whatever its cause. Two looks are some time apart; a sync that comes too early
// is made up for.
import type { Clock, Timer } from '../../lib/clock.ts';

export class ClaimLooks {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #pods = new Map<string, { lastAt: number; timer?: Timer | undefined }>();

  constructor(clock: Clock, options: { everyMs: number }) {
    this.#clock = clock;
    this.#everyMs = options.everyMs;
  }

  /** The pod is being synced. `look` is called now or soon, if at all: for the first sync claims are read anyway. */
  synced(uid: string, mayGrow: boolean, look: () => void): void {
    const now = this.#clock.monotonic();
    const pod = this.#pods.get(uid);
    if (pod === undefined) return void this.#pods.set(uid, { lastAt: now });
    if (!mayGrow || pod.timer !== undefined) return;
    const waitMs = pod.lastAt + this.#everyMs - now;
    const begin = (): void => {
      this.#pods.set(uid, { lastAt: this.#clock.monotonic() });
      look();
    };
    if (waitMs <= 0) return begin();
    pod.timer = this.#clock.after(waitMs, begin);
  }

  forget(uid: string): void {
    this.#pods.get(uid)?.timer?.cancel();
    this.#pods.delete(uid);
  }

  stop(): void {
    for (const uid of this.#pods.keys()) this.forget(uid);
  }
}
