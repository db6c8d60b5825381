// A file that follows a value in memory. The first change is written at once; those that come while a write is under way or
// shortly after it go into one more write. A write that fails (a full disk) is logged once and tried again until it succeeds.
import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from './atomic-file.ts';
import { Backoff } from './backoff.ts';
import type { Clock } from './clock.ts';
import { errnoOf } from './errors.ts';
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

export class LatestFile {
  readonly #deps: LatestFileDeps;
  readonly #o: LatestFileOptions;
  readonly #backoff: Backoff;
  #dirty = false;
  #failing = false;
  #hurry = false;
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
    this.#dirty = true;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
      // A change that came between the last look and here.
      if (this.#dirty) this.changed();
    });
  }

  /** Resolves when everything changed so far is on disk, or one more write of it has failed. */
  async flush(): Promise<void> {
    this.#hurry = true;
    this.#pause?.abort();
    while (this.#writing !== undefined) await this.#writing;
    this.#hurry = false;
  }

  async #write(): Promise<void> {
    const { path, content } = this.#o;
    while (this.#dirty) {
      this.#dirty = false;
      let pauseMs = PAUSE_MS;
      try {
        await writeFileAtomic(path, content(), 0o600);
        if (this.#failing) this.#deps.log.info('state file is written again', { path });
        this.#failing = false;
        this.#backoff.succeeded();
      } catch (err) {
        if (!this.#failing) this.#deps.log.error('state file was not written, trying again', { path, err });
        this.#failing = true;
        // Whoever flushes is about to end: one more failure is the last.
        this.#dirty = !this.#hurry;
        pauseMs = this.#backoff.failed(this.#deps.clock.monotonic());
      }
      if (!this.#hurry) await this.#rest(pauseMs);
    }
  }

  async #rest(ms: number): Promise<void> {
    this.#pause = new AbortController();
    await this.#deps.clock.sleep(ms, this.#pause.signal);
    this.#pause = undefined;
  }
}
