// A token bucket on the monotonic clock: client QPS, registry QPS, event limits.
import type { Clock } from './clock.ts';

export class TokenBucket {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #at: number;

  /** `perSecond` ≤ 0 means unlimited. */
  constructor(clock: Clock, perSecond: number, burst: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#at = clock.monotonic();
  }

  tryTake(): boolean {
    if (this.#perSecond <= 0) return true;
    this.#refill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Waits for a token, in order of arrival; returns the wait in milliseconds. */
  async take(signal: AbortSignal): Promise<number> {
    if (this.#perSecond <= 0) return 0;
    this.#refill();
    this.#tokens -= 1;
    const waitMs = this.#tokens >= 0 ? 0 : (-this.#tokens / this.#perSecond) * 1000;
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal);
    if (signal.aborted) this.#tokens += 1; // nobody uses it
    signal.throwIfAborted();
    return waitMs;
  }

  #refill(): void {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#at) / 1000) * this.#perSecond);
    this.#at = now;
  }
}
