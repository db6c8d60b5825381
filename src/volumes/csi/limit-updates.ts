// Asks drivers again how many volumes they can take, as often as their CSIDriver objects say, and tells the cluster.
import { aborted } from '../../lib/abort.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Runnable } from '../../lib/supervise.ts';

export type LimitUpdatesDeps = {
  readonly drivers: { names(): string[]; refreshLimits(driver: string, signal: AbortSignal): Promise<void> };
  /** Undefined: never. */
  readonly periodSeconds: (driver: string) => number | undefined;
  readonly clock: Clock;
  readonly log: Logger;
};

type Watched = { readonly periodMs: number; timer: Timer };

export class LimitUpdates implements Runnable {
  readonly name = 'csi-limits';
  readonly #deps: LimitUpdatesDeps;
  readonly #watched = new Map<string, Watched>();
  readonly #running = new Set<Promise<void>>();
  #signal: AbortSignal | undefined;

  constructor(deps: LimitUpdatesDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    this.changed();
    await aborted(signal);
    for (const { timer } of this.#watched.values()) timer.cancel();
    await Promise.all(this.#running);
  }

  /** A driver came or went, or an object says another period. */
  changed(): void {
    if (this.#signal === undefined || this.#signal.aborted) return;
    const wanted = new Map<string, number>();
    for (const driver of this.#deps.drivers.names()) {
      const seconds = this.#deps.periodSeconds(driver);
      if (seconds !== undefined && seconds > 0) wanted.set(driver, seconds * 1000);
    }
    for (const [driver, { timer, periodMs }] of this.#watched) {
      if (wanted.get(driver) === periodMs) continue;
      timer.cancel();
      this.#watched.delete(driver);
    }
    for (const [driver, periodMs] of wanted) if (!this.#watched.has(driver)) this.#schedule(driver, periodMs);
  }

  #schedule(driver: string, periodMs: number): void {
    const timer = this.#deps.clock.after(periodMs, () => {
      const updating = this.#update(driver, periodMs).finally(() => this.#running.delete(updating));
      this.#running.add(updating);
    });
    this.#watched.set(driver, { periodMs, timer });
  }

  async #update(driver: string, periodMs: number): Promise<void> {
    const signal = this.#signal;
    if (signal === undefined || signal.aborted) return;
    const own = this.#watched.get(driver);
    try {
      await this.#deps.drivers.refreshLimits(driver, signal);
    } catch (err) {
      if (!signal.aborted) this.#deps.log.warn('the volume limit of a CSI driver was not updated', { driver, err });
    }
    if (!signal.aborted && this.#watched.get(driver) === own) this.#schedule(driver, periodMs);
  }
}
