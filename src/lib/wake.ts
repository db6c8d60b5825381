// A rest that can be cut short: for loops that work on their own time and also when something happened.
import type { Clock } from './clock.ts';

export class Wake {
  #rested: (() => void) | undefined;
  #pending = false;

  /** Ends the rest under way, or the next one before it begins. */
  wake(): void {
    this.#pending = true;
    this.#rested?.();
  }

  /** Resolves after `ms`, when woken (then true), or when `signal` aborts; never rejects. One rest at a time. */
  async rest(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#pending && !signal.aborted)
      await new Promise<void>((resolve) => {
        const done = (): void => {
          timer.cancel();
          signal.removeEventListener('abort', done);
          this.#rested = undefined;
          resolve();
        };
        const timer = clock.after(ms, done);
        signal.addEventListener('abort', done, { once: true });
        this.#rested = done;
      });
    const isWoken = this.#pending;
    this.#pending = false;
    return isWoken;
  }
}
