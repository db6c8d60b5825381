// Gives memory back after a busy time. V8 keeps what a burst made it take, for the next one; a node agent is quiet for
// hours in between, so once nothing has happened for a while and memory has grown, everything is collected at once, and
// the pages of the program that only the busy time needed go as well.
import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { aborted } from '../../lib/abort.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import { trimHeapSync } from '../libc.ts';
import { dropCodePages } from './code-pages.ts';

export type QuietMemoryDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  /** Without pages of files: those come back as they are used, which is no growth. */
  readonly ownBytes?: () => number;
  /** `andCode`: compiled code goes, too, and what is used is compiled again. */
  readonly collect?: (how: { readonly andCode: boolean }) => void;
  /** Gives back what native code no longer uses. */
  readonly trim?: () => void;
  readonly dropPages?: () => Promise<void>;
};

const QUIET_MS = 10_000;
/** Less is not worth the compiled code that goes with it. */
const GROWN_BYTES = 16e6;
/** Giving native memory back takes a few milliseconds, and nothing has to be made again. */
const TRIM_BYTES = 4e6;

export class QuietMemory {
  readonly name = 'quiet-memory';
  readonly #deps: Required<QuietMemoryDeps>;
  #timer: Timer | undefined;
  #low: number;
  #trimmed = -Infinity;
  #last = 0;

  constructor(deps: QuietMemoryDeps) {
    this.#deps = {
      ownBytes: anonymousBytes,
      collect: collectAll,
      trim: trimHeapSync,
      dropPages: dropCodePages,
      ...deps,
    };
    this.#low = Infinity;
  }

  /** Something is going on. Cheap: called for every step of every pod. */
  touch(): void {
    this.#last = this.#deps.clock.monotonic();
    this.#timer ??= this.#lookIn(QUIET_MS);
  }

  async run(signal: AbortSignal): Promise<void> {
    this.touch();
    await aborted(signal);
    this.#timer?.cancel();
  }

  #lookIn(ms: number): Timer {
    const { clock, log } = this.#deps;
    return clock.after(ms, () => void this.#look().catch((err: unknown) => log.warn('memory is kept', { err })));
  }

  async #look(): Promise<void> {
    const { clock, log, ownBytes, collect, trim, dropPages } = this.#deps;
    this.#timer = undefined;
    const quietMs = clock.monotonic() - this.#last;
    if (quietMs < QUIET_MS) {
      this.#timer = this.#lookIn(QUIET_MS - quietMs);
      return;
    }
    const before = ownBytes();
    const isFirst = this.#low === Infinity;
    if (isFirst || before - this.#low >= GROWN_BYTES) {
      // After the start most of the code that was compiled is never run again; after pods it is what the next ones need.
      collect({ andCode: isFirst });
      await dropPages().catch((err: unknown) => log.debug('pages of the program stay', { err }));
      log.debug('memory given back', { beforeBytes: before, afterBytes: ownBytes() });
      this.#low = ownBytes();
    }
    // What native code takes again with the next pods is no growth: `low` does not know of this.
    if (ownBytes() - this.#trimmed < TRIM_BYTES) return;
    // Another C library keeps what it has.
    await Promise.try(trim).catch((err: unknown) => log.debug('native memory stays', { err }));
    this.#trimmed = ownBytes();
  }
}

type Collect = (how: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/** V8 offers this to those who ask for it by a flag; asked here, the flag concerns nobody else. */
function collectAll({ andCode }: { readonly andCode: boolean }): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as Collect;
  const collect = (): void => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  if (!andCode) return collect();
  // Otherwise code goes that was not run between six collections. The first one lets go of it, the second collects it.
  setFlagsFromString('--stress-flush-code');
  collect();
  collect();
  setFlagsFromString('--no-stress-flush-code');
}

function anonymousBytes(): number {
  const [, kb] = /^RssAnon:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kb ?? 0) * 1024;
}
