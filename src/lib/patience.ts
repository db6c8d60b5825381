// Work that can wait lets pods start first: before each step anew, but altogether only for a while, because on some
// nodes there are always pods that start. Somebody in need can end the waiting.
import { childScope, withDeadline } from './abort.ts';
import type { Clock } from './clock.ts';

/** Resolves when no pod is starting. */
export type Quiet = (signal: AbortSignal) => Promise<void>;

export class Patience {
  readonly #clock: Clock;
  readonly #quiet: Quiet;
  readonly #until: number;
  readonly #signal: AbortSignal;
  readonly #scope: ReturnType<typeof childScope>;

  constructor(clock: Clock, quiet: Quiet, ms: number, signal: AbortSignal) {
    this.#clock = clock;
    this.#quiet = quiet;
    this.#until = clock.monotonic() + ms;
    this.#signal = signal;
    this.#scope = childScope(signal);
  }

  /** Waits for a good moment, or until there is no patience left. */
  async wait(): Promise<void> {
    const leftMs = this.#until - this.#clock.monotonic();
    if (leftMs <= 0 || this.#scope.signal.aborted) return this.#signal.throwIfAborted();
    try {
      await withDeadline(this.#clock, this.#scope.signal, leftMs, this.#quiet);
    } catch {
      // Too long, or somebody is in need: on with the work, unless nobody wants it any more.
      this.#signal.throwIfAborted();
    }
  }

  /** No more waiting. Also to be called when the work is over. */
  end(): void {
    this.#scope.abort(new Error('no more waiting'));
    this.#scope.release();
  }
}
