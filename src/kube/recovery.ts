// Tells those who wait for the API server that it answers again. Their own back-off may have grown to half a minute; one
// answer to anybody cuts it short. Not more often than every few seconds: a server that answers now and then is not back.
// Answers to requests (not to watches) are told one by one, for the one watch that must not wait while they come.
import type { Clock, Timer } from '../lib/clock.ts';

const EVERY_MS = 10_000;

export class Recovery {
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  readonly #answerListeners = new Set<() => void>();
  #answeredAt = -Infinity;
  #down = false;
  #toldAt = -Infinity;
  #later: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** When a request was answered last, by the monotonic clock. */
  get answeredAt(): number {
    return this.#answeredAt;
  }

  /** A request got no answer. */
  failed(): void {
    this.#down = true;
  }

  /** A request or a watch got an answer that is not a plea to go away. */
  answered(what: 'request' | 'watch' = 'request'): void {
    if (what === 'request') {
      this.#answeredAt = this.#clock.monotonic();
      for (const listener of this.#answerListeners) listener();
    }
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

  /** Of every answer to a request. Returns a function that ends the subscription. */
  onAnswered(listener: () => void): () => void {
    this.#answerListeners.add(listener);
    return () => this.#answerListeners.delete(listener);
  }

  /** Returns a function that ends the subscription. */
  onRecovered(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
