// Answers with a time to live. Questions that are asked at the same time are asked once.
import type { Clock } from '../lib/clock.ts';
import { Lru } from '../lib/lru.ts';

const ENTRIES = 4096;

/** Told of every question to the cache. */
export interface CacheObserver {
  /** The answer was known. */
  hit(): void;
  /** Somebody waits for an answer, whoever asks for it. */
  miss<T>(wait: () => Promise<T>): Promise<T>;
  /** The answer is being asked for. */
  fetch<T>(ask: () => Promise<T>): Promise<T>;
}

export class ReviewCache<V> {
  readonly #clock: Clock;
  readonly #ttlMs: (value: V) => number;
  readonly #observer: CacheObserver | undefined;
  readonly #answers = new Lru<string, { value: V; until: number }>(ENTRIES);
  readonly #asking = new Map<string, Promise<V>>();

  constructor(clock: Clock, ttlMs: (value: V) => number, observer?: CacheObserver) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    this.#observer = observer;
  }

  /** How many questions have no answer yet. */
  get asking(): number {
    return this.#asking.size;
  }

  /** Whether an answer is known, or on its way. */
  has(key: string): boolean {
    const known = this.#answers.get(key);
    return this.#asking.has(key) || (known !== undefined && this.#clock.monotonic() < known.until);
  }

  /** Failures of `ask` are not kept. */
  async get(key: string, ask: () => Promise<V>): Promise<V> {
    const known = this.#answers.get(key);
    if (known !== undefined && this.#clock.monotonic() < known.until) {
      this.#observer?.hit();
      return known.value;
    }
    const wait = (): Promise<V> => this.#wait(key, ask);
    return await (this.#observer?.miss(wait) ?? wait());
  }

  async #wait(key: string, ask: () => Promise<V>): Promise<V> {
    const joined = this.#asking.get(key);
    // Whoever asked may have gone away before the answer: then we ask ourselves.
    if (joined !== undefined) return await joined.catch(() => this.#ask(key, ask));
    return await this.#ask(key, ask);
  }

  #ask(key: string, ask: () => Promise<V>): Promise<V> {
    const asking = (this.#observer?.fetch(ask) ?? ask())
      .then((value) => {
        this.#answers.set(key, { value, until: this.#clock.monotonic() + this.#ttlMs(value) });
        return value;
      })
      .finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }
}
