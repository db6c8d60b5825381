// A file that follows a value in memory. The first change is written at once; those that come while a write is under way or
// shortly after it go into one more write. A write that fails is logged and comes right with the next change.
import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from './atomic-file.ts';
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

export class LatestFile {
  readonly #deps: LatestFileDeps;
  readonly #o: LatestFileOptions;
  #dirty = false;
  #hurry = false;
  #pause: AbortController | undefined;
  #writing: Promise<void> | undefined;

  constructor(deps: LatestFileDeps, options: LatestFileOptions) {
    this.#deps = deps;
    this.#o = options;
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
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
  }

  /** Resolves when everything changed so far is on disk, or was given up with an error in the log. */
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
      try {
        await writeFileAtomic(path, content(), 0o600);
      } catch (err) {
        this.#deps.log.error('state file was not written', { path, err });
      }
      if (!this.#hurry) await this.#rest();
    }
  }

  async #rest(): Promise<void> {
    this.#pause = new AbortController();
    await this.#deps.clock.sleep(PAUSE_MS, this.#pause.signal);
    this.#pause = undefined;
  }
}
