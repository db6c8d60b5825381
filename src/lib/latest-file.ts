// A file that follows a value in memory. Changes while a write is under way go into one more write; a write that fails is
// logged and comes right with the next change.
import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from './atomic-file.ts';
import { errnoOf } from './errors.ts';
import type { Logger } from './logger.ts';

export type LatestFileOptions = {
  readonly path: string;
  /** What should stand in the file now. */
  readonly content: () => string;
};

export class LatestFile {
  readonly #log: Logger;
  readonly #o: LatestFileOptions;
  #dirty = false;
  #writing: Promise<void> | undefined;

  constructor(deps: { readonly log: Logger }, options: LatestFileOptions) {
    this.#log = deps.log;
    this.#o = options;
  }

  /** Hands what an earlier run left to `take`. A file that cannot be read or understood counts as absent. */
  async load(take: (text: string) => void): Promise<void> {
    const { path } = this.#o;
    try {
      take(await readFile(path, 'utf8'));
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT') this.#log.warn('state file is not readable', { path, err });
    }
  }

  changed(): void {
    this.#dirty = true;
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
  }

  /** Resolves when everything changed so far is on disk, or was given up with an error in the log. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async #write(): Promise<void> {
    const { path, content } = this.#o;
    while (this.#dirty) {
      this.#dirty = false;
      try {
        await writeFileAtomic(path, content(), 0o600);
      } catch (err) {
        this.#log.error('state file was not written', { path, err });
      }
    }
  }
}
