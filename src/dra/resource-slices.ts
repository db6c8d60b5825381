// Removes what DRA drivers published of this node: everything at the kubelet's start, and what a driver published that
// stays away. Drivers that live publish anew.
import { aborted, childScope, type Scope } from '../lib/abort.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';

export type SliceCleanerDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  /** Deletes this node's slices that match the field selector. */
  readonly deleteSlices: (fieldSelector: string, signal: AbortSignal) => Promise<void>;
};

/** A driver that is updated comes back within this time. */
export const ABSENCE_MS = 30_000;
const RETRY = { baseMs: 1000, maxMs: 5 * 60_000 };
const JITTER = 0.2;

export class SliceCleaner implements Runnable {
  readonly name = 'resource-slices';
  readonly #deps: SliceCleanerDeps;
  readonly #nodeName: string;
  readonly #pending = new Map<string, Scope>();
  readonly #running = new Set<Promise<void>>();
  #signal: AbortSignal | undefined;

  constructor(deps: SliceCleanerDeps, options: { readonly nodeName: string }) {
    this.#deps = deps;
    this.#nodeName = options.nodeName;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    await this.#clean('', 0, signal);
    await aborted(signal);
    await Promise.all(this.#running);
  }

  driverGone(driver: string): void {
    if (this.#signal === undefined || this.#signal.aborted || this.#pending.has(driver)) return;
    const scope = childScope(this.#signal);
    this.#pending.set(driver, scope);
    const cleaning = this.#clean(driver, ABSENCE_MS, scope.signal).finally(() => {
      scope.release();
      if (this.#pending.get(driver) === scope) this.#pending.delete(driver);
      this.#running.delete(cleaning);
    });
    this.#running.add(cleaning);
  }

  driverBack(driver: string): void {
    this.#pending.get(driver)?.abort();
    this.#pending.delete(driver);
  }

  /** Tries until it is done or called off. */
  async #clean(driver: string, delayMs: number, signal: AbortSignal): Promise<void> {
    const { clock, log, deleteSlices } = this.#deps;
    const selector = `spec.nodeName=${this.#nodeName}${driver === '' ? '' : `,spec.driver=${driver}`}`;
    const backoff = new Backoff(RETRY);
    await clock.sleep(delayMs, signal);
    while (!signal.aborted) {
      try {
        return await deleteSlices(selector, signal);
      } catch (err) {
        if (signal.aborted) return;
        // A cluster without this API has no slices either.
        if (isFault(err, 'notFound')) return;
        log.debug('resource slices stay for now', { selector, err });
      }
      await clock.sleep(backoff.failed(clock.monotonic()) * (1 + JITTER * clock.random()), signal);
    }
  }
}
