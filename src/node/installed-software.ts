// What can be replaced while we run: the container runtime and the operating system's release. Looked at now and then, and never
// waited for: a status tells what was seen last.
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';

export type Software = { readonly runtimeVersion: string; readonly osImage: string };

export type InstalledSoftwareDeps = {
  readonly runtimeVersion: (signal: AbortSignal) => Promise<string>;
  readonly osImage: () => Promise<string>;
  readonly clock: Clock;
  readonly log: Logger;
};

const FRESH_MS = 30_000;
const LOOK_MS = 10_000;

export class InstalledSoftware {
  readonly #deps: InstalledSoftwareDeps;
  #seen: Software;
  #at: number | undefined;

  /** `atStart` was read just before. */
  constructor(deps: InstalledSoftwareDeps, atStart: Software) {
    this.#deps = deps;
    this.#seen = atStart;
  }

  /** As last seen; looks again, for those who ask later, when that is a while ago. */
  latest(signal: AbortSignal): Software {
    const now = this.#deps.clock.monotonic();
    this.#at ??= now;
    if (now - this.#at >= FRESH_MS) {
      this.#at = now;
      void this.#look(signal);
    }
    return this.#seen;
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    try {
      this.#seen = await withDeadline(clock, signal, LOOK_MS, (own) => abortable(own, this.#read(own)));
    } catch (err) {
      if (!signal.aborted) log.debug('the version of the runtime is not known, taken as it was', { err });
    }
  }

  async #read(signal: AbortSignal): Promise<Software> {
    const { runtimeVersion, osImage } = this.#deps;
    return { osImage: await osImage(), runtimeVersion: await runtimeVersion(signal) };
  }
}
