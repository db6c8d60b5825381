// Says that calls wait for their turn in the client's own budget, at client-go's thresholds and rate: a node that is slowed
// by its settings looks like one whose API server is slow.
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';

export type Wait = {
  readonly ms: number;
  readonly verb: string;
  /** A path, without a query. */
  readonly path: string;
  /** The setting that the wait is due to. */
  readonly limit: string;
};

const LONG_MS = 50;
const VERY_LONG_MS = 1000;
const INTERVAL_MS = 10_000;
const VERBOSE_INTERVAL_MS = 1000;

export class ThrottleLog {
  readonly #clock: Clock;
  readonly #log: Logger;
  #saidMs = -Infinity;

  constructor(deps: { clock: Clock; log: Logger }) {
    this.#clock = deps.clock;
    this.#log = deps.log.child({ component: 'request' });
  }

  waited({ ms, verb, path, limit }: Wait): void {
    if (ms <= LONG_MS || !this.#isDue(ms)) return;
    this.#log.info('Waited before sending request', {
      delay: `${(ms / 1000).toFixed(3)}s`,
      reason: 'client-side throttling, not priority and fairness',
      verb,
      URL: path,
      limit,
    });
  }

  #isDue(ms: number): boolean {
    if (this.#log.enabled(3)) return true;
    if (ms <= VERY_LONG_MS) return false;
    const now = this.#clock.monotonic();
    if (now - this.#saidMs < (this.#log.enabled(2) ? VERBOSE_INTERVAL_MS : INTERVAL_MS)) return false;
    this.#saidMs = now;
    return true;
  }
}
