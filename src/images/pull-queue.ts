// Runs pulls: one at a time or a few at once, no more per second than allowed, and never the same pull twice: whoever
// asks for what is being pulled with the same credentials waits for that pull. The last waiter to leave cancels it.
import { childScope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { TokenBucket } from '../lib/token-bucket.ts';
import { PullTurns, type PullTurn } from './pull-turns.ts';

export type PullQueueOptions = {
  readonly serialize: boolean;
  /** Ignored while pulls are serial; undefined means no limit. */
  readonly maxParallel: number | undefined;
  /** Pulls per second; 0 means no limit. */
  readonly qps: number;
  readonly burst: number;
};

export type Pulled<T> = { readonly value: T; readonly tookMs: number };
type Shared<T> = {
  readonly result: Promise<Pulled<T>>;
  readonly started: Promise<void>;
  readonly stop: AbortController;
  waiters: number;
};

export class PullQueue<T> {
  readonly #clock: Clock;
  readonly #turns: PullTurns;
  readonly #bucket: TokenBucket;
  readonly #pulls = new Map<string, Shared<T>>();

  constructor(clock: Clock, options: PullQueueOptions) {
    this.#clock = clock;
    const atOnce = options.serialize ? 1 : (options.maxParallel ?? Infinity);
    this.#turns = new PullTurns(clock, { atOnce, inOrder: options.serialize });
    this.#bucket = new TokenBucket(clock, options.qps, options.burst);
  }

  /** Pulls that wait for their turn. */
  get waiting(): number {
    return this.#turns.waiting;
  }

  /** Pulls asked for and not finished. */
  get active(): number {
    return this.#pulls.size;
  }

  /** `onStart` tells that the pull has its turn. */
  async run(
    key: string,
    turn: PullTurn,
    pull: (signal: AbortSignal) => Promise<T>,
    onStart: () => void,
    signal: AbortSignal,
  ): Promise<Pulled<T>> {
    signal.throwIfAborted();
    const shared = this.#pulls.get(key) ?? this.#begin(key, turn, pull);
    shared.waiters++;
    void shared.started.then(onStart);
    const scope = childScope(signal);
    try {
      return await new Promise<Pulled<T>>((resolve, reject) => {
        scope.signal.addEventListener('abort', () => reject(asError(scope.signal.reason)), { once: true });
        shared.result.then(resolve, reject);
      });
    } finally {
      scope.release();
      if (--shared.waiters === 0) {
        if (this.#pulls.get(key) === shared) this.#pulls.delete(key);
        shared.stop.abort(new KubeletError('cancelled', 'nobody waits for this pull any more'));
      }
    }
  }

  #begin(key: string, whose: PullTurn, pull: (signal: AbortSignal) => Promise<T>): Shared<T> {
    const stop = new AbortController();
    const turn = Promise.withResolvers<void>();
    const result = this.#turns.run(whose, stop.signal, async () => {
      if (!this.#bucket.tryTake()) throw new KubeletError('exhausted', 'pull QPS exceeded');
      turn.resolve();
      const begun = this.#clock.monotonic();
      const value = await pull(stop.signal);
      return { value, tookMs: this.#clock.monotonic() - begun };
    });
    const shared: Shared<T> = { result, started: turn.promise, stop, waiters: 0 };
    this.#pulls.set(key, shared);
    const forget = (): void => {
      if (this.#pulls.get(key) === shared) this.#pulls.delete(key);
    };
    result.then(forget, forget);
    return shared;
  }
}

const asError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error(String(reason)));
