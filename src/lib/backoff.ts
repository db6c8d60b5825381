// Exponential back-off as a small value owned by the thing that fails. It never gives up.

export type BackoffOptions = { baseMs: number; maxMs: number; factor?: number };

export class Backoff {
  readonly #o: BackoffOptions;
  #fails = 0;
  #last = -Infinity;

  constructor(options: BackoffOptions) {
    this.#o = options;
  }

  /** Records a failure at monotonic `now` and says how long to wait. A long quiet time starts over. */
  failed(now: number): number {
    if (now - this.#last > 2 * this.#o.maxMs) this.#fails = 0;
    this.#last = now;
    return Math.min(this.#o.baseMs * (this.#o.factor ?? 2) ** this.#fails++, this.#o.maxMs);
  }

  succeeded(): void {
    this.#fails = 0;
  }

  get failures(): number {
    return this.#fails;
  }
}
