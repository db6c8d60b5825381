// Bursts: pods are started in the order they came, a few at a time, so that the first are up while the last still wait
// and the runtime is not asked for everything at once. A start that takes long (a pull, a volume that does not come)
// gives its turn up and goes on beside the others: one slow pod holds up nobody.
import type { Clock } from '../lib/clock.ts';
import { Semaphore } from '../lib/semaphore.ts';

export type StartTurnsOptions = {
  /** How many starts may be under way. */
  readonly atOnce: number;
  /** How long one may hold its turn. */
  readonly holdMs: number;
};

export class StartTurns {
  readonly #clock: Clock;
  readonly #holdMs: number;
  readonly #places: Semaphore;

  constructor(clock: Clock, options: StartTurnsOptions) {
    this.#clock = clock;
    this.#holdMs = options.holdMs;
    this.#places = new Semaphore(options.atOnce);
  }

  /** How many pods wait for their turn. */
  get waiting(): number {
    return this.#places.waiting;
  }

  async run<T>(signal: AbortSignal, start: () => Promise<T>): Promise<T> {
    const begun = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    const place = this.#places.run(signal, () => {
      begun.resolve();
      return over.promise;
    });
    await Promise.race([begun.promise, place]);
    const timer = this.#clock.after(this.#holdMs, over.resolve);
    try {
      return await start();
    } finally {
      timer.cancel();
      over.resolve();
      await place;
    }
  }
}
