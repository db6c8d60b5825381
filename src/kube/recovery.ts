// Tells those who wait for the API server that it answers again. Their own back-off may have grown to half a minute; one
// answer to anybody cuts it short. Not more often than every few seconds: a server that answers now and then is not back.
import type { Clock, Timer } from '../lib/clock.ts';

const EVERY_MS = 10_000;

export class Recovery {
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  #down = false;
  #toldAt = -Infinity;
  #later: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A request got no answer. */
  failed(): void {
    this.#down = true;
  }

  /** A request got an answer that is not a plea to go away. */
  answered(): void {
    if (!this.#down) return;
    this.#down = false;
    const waitMs = this.#toldAt + EVERY_MS - this.#clock.monotonic();
    if (waitMs <= 0) return this.#tell();
    this.#later ??= this.#clock.after(waitMs, () => {
      this.#later = undefined;
      if (!this.#down) this.#tell();
    });
  }

  /** Nothing more is told. */
  stop(): void {
    this.#later?.cancel();
    this.#later = undefined;
  }

  #tell(): void {
    this.#toldAt = this.#clock.monotonic();
    for (const listener of this.#listeners) listener();
  }

  /** Returns a function that ends the subscription. */
  onRecovered(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
