// What directories hold. Small ones are walked in this process. Large ones are counted by a child process, a few at a time and
// for as long as it takes within a deadline: whoever asks waits a moment, and is told no less than what is known by then.
import { formatDurationMs } from '../core/duration.ts';
import type { WalkBounds } from '../host/files/walk-tree.ts';
import type { MountTable } from '../host/mounts/mount-table.ts';
import { childScope, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { Lru } from '../lib/lru.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { walkDirectory } from './directory-walk.ts';
import { FIND, findEntries } from './find-entries.ts';
import { largerOf, Tally, type DirectorySize } from './tally.ts';

export type DirectorySizesOpts = {
  /** A directory with more entries is large. */
  readonly largeEntries?: number;
  /** How long whoever asks waits for the count of a large directory. */
  readonly waitMs?: number;
  /** How long such a count may take. */
  readonly deadlineMs?: number;
  /** Runs find(1). */
  readonly find?: readonly string[];
  /** Of a count without it. */
  readonly bounds?: Partial<WalkBounds>;
};

/** A large directory. */
type Large = {
  /** The last count that came to its end, or what one that did not had found beyond it. */
  atLeast: DirectorySize;
  isWarned: boolean;
  counting: { tally: Tally; done: Promise<void> } | undefined;
};

const AT_ONCE = 2;
const MAX_REMEMBERED = 1_000;

export class DirectorySizes {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #o: Required<DirectorySizesOpts>;
  readonly #large = new Lru<string, Large>(MAX_REMEMBERED);
  readonly #turns = new Semaphore(AT_ONCE);

  constructor(deps: { readonly clock: Clock; readonly log: Logger }, opts: DirectorySizesOpts = {}) {
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#o = { largeEntries: 2_000, waitMs: 2_000, deadlineMs: 5 * 60_000, find: FIND, bounds: {}, ...opts };
  }

  /** `signal` also ends a count that goes on after the answer. */
  async of(path: string, mounts: MountTable, signal: AbortSignal): Promise<DirectorySize> {
    let large = this.#large.get(path);
    if (large === undefined) {
      const tally = new Tally();
      if (await walkDirectory(path, mounts, tally, signal, this.#o.largeEntries)) return tally.size;
      large = { atLeast: tally.size, isWarned: false, counting: undefined };
      this.#large.set(path, large);
    }
    large.counting ??= this.#startCount(path, mounts, large, signal);
    const { counting } = large;
    const wait = childScope(signal);
    try {
      await Promise.race([counting.done, this.#clock.sleep(this.#o.waitMs, wait.signal)]);
    } finally {
      wait.abort();
      wait.release();
    }
    signal.throwIfAborted();
    return large.counting === undefined ? large.atLeast : largerOf(large.atLeast, counting.tally.size);
  }

  #startCount(path: string, mounts: MountTable, large: Large, signal: AbortSignal): NonNullable<Large['counting']> {
    const counting = { tally: new Tally(), done: Promise.resolve() };
    counting.done = this.#turns
      .run(signal, () => this.#count(path, mounts, large, counting, signal))
      .finally(() => (large.counting = undefined));
    // Those who wait are told; nobody may.
    counting.done.catch(() => {});
    return counting;
  }

  async #count(
    path: string,
    mounts: MountTable,
    large: Large,
    counting: { tally: Tally },
    signal: AbortSignal,
  ): Promise<void> {
    const keep = (): void => void (large.atLeast = largerOf(large.atLeast, counting.tally.size));
    try {
      await withDeadline(this.#clock, signal, this.#o.deadlineMs, async (own) => {
        if (await findEntries(this.#o.find, path, mounts, counting.tally, own)) return;
        keep();
        counting.tally = new Tally();
        await walkDirectory(path, mounts, counting.tally, own, Infinity, this.#o.bounds);
      });
      large.atLeast = counting.tally.size;
      if (large.atLeast.inodes <= this.#o.largeEntries) this.#large.delete(path);
    } catch (err) {
      keep();
      const isLate = isFault(err, 'deadline');
      if (signal.aborted || !(isLate || isFault(err, 'exhausted'))) {
        this.#large.delete(path);
        throw err;
      }
      if (large.isWarned) return;
      large.isWarned = true;
      const reason = isLate ? `not counted within ${formatDurationMs(this.#o.deadlineMs)}` : messageOf(err);
      this.#log.warn('directory was not counted to the end, it may hold more than is told', { path, reason });
    }
  }
}
