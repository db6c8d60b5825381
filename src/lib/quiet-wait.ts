// Work that can wait steps back for work that cannot: before each step anew, but altogether only for a limited time,
// because on some machines it is never quiet. The waiting can be ended early.
import { childScope, withDeadline } from './abort.ts';
import type { Clock } from './clock.ts';

/** Resolves when there is nothing to step back for. */
export type Quiet = (signal: AbortSignal) => Promise<void>;

export class QuietWait {
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

  /** Waits for a good moment, or until the time is over. */
  async wait(): Promise<void> {
    const leftMs = this.#until - this.#clock.monotonic();
    if (leftMs <= 0 || this.#scope.signal.aborted) return this.#signal.throwIfAborted();
    try {
      await withDeadline(this.#clock, this.#scope.signal, leftMs, this.#quiet);
    } catch {
      // Too long, or ended early: on with the work, unless nobody wants it any more.
      this.#signal.throwIfAborted();
    }
  }

  /** No more waiting. Also to be called when the work is over. */
  end(): void {
    this.#scope.abort(new Error('no more waiting'));
    this.#scope.release();
  }
}
