// What takes a while to read, or never comes while the runtime hangs: nobody waits long for it, and what was read last
// is shown as long as it is still true enough.
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';

/** A page that comes late is of no use to somebody who looks why things are slow. */
const WAIT_MS = 1000;
const DEADLINE_MS = 15_000;
const KEEP_MS = 60_000;

export class LastKnown<T> {
  readonly #deps: { readonly clock: Clock; readonly log: Logger };
  readonly #read: (signal: AbortSignal) => Promise<T>;
  #known: { readonly value: T; readonly at: number } | undefined;
  #reading: Promise<void> | undefined;

  constructor(deps: { readonly clock: Clock; readonly log: Logger }, read: (signal: AbortSignal) => Promise<T>) {
    this.#deps = deps;
    this.#read = read;
  }

  /** Read anew when it is older than `freshMs`; undefined when there is nothing that is not too old. */
  async get(freshMs: number, signal: AbortSignal): Promise<T | undefined> {
    if (this.#age() >= freshMs) {
      this.#reading ??= this.#readOnce();
      await this.#upTo(WAIT_MS, this.#reading);
      signal.throwIfAborted();
    }
    return this.#age() <= KEEP_MS ? this.#known?.value : undefined;
  }

  #age(): number {
    return this.#known === undefined ? Infinity : this.#deps.clock.monotonic() - this.#known.at;
  }

  /** Not cut off with the request that began it: others may wait for it too. */
  async #readOnce(): Promise<void> {
    const { clock, log } = this.#deps;
    try {
      const value = await withDeadline(clock, new AbortController().signal, DEADLINE_MS, this.#read);
      this.#known = { value, at: clock.monotonic() };
    } catch (err) {
      log.debug('the page has no fresh figures', { err });
    } finally {
      this.#reading = undefined;
    }
  }

  async #upTo(ms: number, reading: Promise<void>): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#deps.clock.after(ms, resolve);
      void reading.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}
