// A file that follows a value in memory. The first change is written at once; changes during a write or shortly after it share
// the next one. A failed write (a full disk) is logged once and tried again until it succeeds.
import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from './atomic-file.ts';
import { Backoff } from './backoff.ts';
import type { Clock } from './clock.ts';
import { errnoOf, KubeletError, messageOf } from './errors.ts';
import type { Logger } from './logger.ts';

export type LatestFileOptions = {
  readonly path: string;
  /** What should stand in the file now. */
  readonly content: () => string;
};

export type LatestFileDeps = { readonly clock: Clock; readonly log: Logger };

/** Between two writes: a burst of changes is a few writes, not one for each. */
const PAUSE_MS = 200;
const RETRY = { baseMs: 1000, maxMs: 30_000 };

type Flush = { readonly change: number; readonly done: PromiseWithResolvers<void> };

/**
 * INVARIANTS:
 * - A change is pending until a write that began after it has succeeded.
 * - While a change is pending and the file is not closed, a write is under way or due.
 * - A flush resolves only when all changes before it are on disk; it rejects when the write that covers them fails.
 */
export class LatestFile {
  readonly #deps: LatestFileDeps;
  readonly #o: LatestFileOptions;
  readonly #backoff: Backoff;
  /** Number of changes so far, and how many of them are on disk. */
  #changes = 0;
  #written = 0;
  #flushes: Flush[] = [];
  #isFailing = false;
  #isClosed = false;
  #pause: AbortController | undefined;
  #writing: Promise<void> | undefined;

  constructor(deps: LatestFileDeps, options: LatestFileOptions) {
    this.#deps = deps;
    this.#o = options;
    this.#backoff = new Backoff(RETRY);
  }

  /** Hands what an earlier run left to `take`. A file that cannot be read or understood counts as absent. */
  async load(take: (text: string) => void): Promise<void> {
    const { path } = this.#o;
    try {
      take(await readFile(path, 'utf8'));
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT') this.#deps.log.warn('state file is not readable', { path, err });
    }
  }

  changed(): void {
    this.#changes++;
    this.#writing ??= this.#write();
  }

  /** Writes pending changes now. Rejects when that fails; the write is tried again in the background all the same. */
  flush(): Promise<void> {
    if (!this.#isPending) return Promise.resolve();
    const done = Promise.withResolvers<void>();
    this.#flushes.push({ change: this.#changes, done });
    this.#pause?.abort();
    this.#writing ??= this.#write();
    return done.promise;
  }

  /** Writes pending changes one last time. A failure is logged, and no timer stays behind. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#pause?.abort();
    try {
      await this.flush();
    } catch (err) {
      this.#deps.log.error('state file was not written at the end', { path: this.#o.path, err });
    }
    await this.#writing;
  }

  get #isPending(): boolean {
    return this.#written < this.#changes;
  }

  /** Clears `#writing` in the same turn as the last look at what is pending: no change falls between the two. */
  async #write(): Promise<void> {
    while (this.#isPending) {
      const pauseMs = await this.#attempt();
      if (this.#flushes.length > 0) continue;
      if (this.#isClosed && this.#isFailing) break;
      if (!this.#isClosed) await this.#rest(pauseMs);
    }
    this.#writing = undefined;
  }

  /** Returns how long to rest before the next write. */
  async #attempt(): Promise<number> {
    const { path, content } = this.#o;
    const { clock, log } = this.#deps;
    const change = this.#changes;
    try {
      await writeFileAtomic(path, content(), 0o600);
      this.#written = change;
      if (this.#isFailing) log.info('state file is written again', { path });
      this.#isFailing = false;
      this.#backoff.succeeded();
      for (const { done } of this.#covered(change)) done.resolve();
      return PAUSE_MS;
    } catch (err) {
      if (!this.#isFailing) log.error('state file was not written, trying again', { path, err });
      this.#isFailing = true;
      const failure = new KubeletError('unavailable', `${path} was not written: ${messageOf(err)}`, { cause: err });
      for (const { done } of this.#covered(change)) done.reject(failure);
      return this.#backoff.failed(clock.monotonic());
    }
  }

  /** Takes the flushes that a write of `change` answers. */
  #covered(change: number): readonly Flush[] {
    const covered = this.#flushes.filter((flush) => flush.change <= change);
    this.#flushes = this.#flushes.filter((flush) => flush.change > change);
    return covered;
  }

  async #rest(ms: number): Promise<void> {
    this.#pause = new AbortController();
    await this.#deps.clock.sleep(ms, this.#pause.signal);
    this.#pause = undefined;
  }
}
