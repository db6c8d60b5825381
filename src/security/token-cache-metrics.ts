// How often a caller's token was known already, and how many are being asked about: upstream's cache of token reviews.
import type { Clock } from '../lib/clock.ts';
import type { Counter, Gauge, Histogram, Registry } from '../lib/metrics.ts';
import type { CacheObserver } from './review-cache.ts';

export class TokenCacheMetrics implements CacheObserver {
  readonly #clock: Clock;
  readonly #requests: Counter;
  readonly #seconds: Histogram;
  readonly #fetches: Counter;
  readonly #active: Gauge;

  constructor(clock: Clock, registry: Registry) {
    const label = ['status'];
    this.#clock = clock;
    this.#requests = registry.counter('authentication_token_cache_request_total', NO_TEXT, label);
    this.#seconds = registry.histogram('authentication_token_cache_request_duration_seconds', NO_TEXT, label);
    this.#fetches = registry.counter('authentication_token_cache_fetch_total', NO_TEXT, label);
    this.#active = registry.gauge('authentication_token_cache_active_fetch_count', NO_TEXT, label);
  }

  hit(): void {
    this.#answered('hit', 0);
  }

  async miss<T>(wait: () => Promise<T>): Promise<T> {
    const from = this.#clock.monotonic();
    this.#active.add(1, { status: 'blocked' });
    try {
      return await wait();
    } finally {
      this.#answered('miss', (this.#clock.monotonic() - from) / 1000);
      this.#active.add(-1, { status: 'blocked' });
    }
  }

  async fetch<T>(ask: () => Promise<T>): Promise<T> {
    this.#active.add(1, { status: 'in_flight' });
    let status = 'error';
    try {
      const answer = await ask();
      status = 'ok';
      return answer;
    } finally {
      this.#fetches.inc({ status });
      this.#active.add(-1, { status: 'in_flight' });
    }
  }

  #answered(status: 'hit' | 'miss', seconds: number): void {
    this.#requests.inc({ status });
    this.#seconds.observe(seconds, { status });
  }
}

/** Upstream says no more of them. */
const NO_TEXT = '[ALPHA] ';
