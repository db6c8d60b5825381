// A state file that must be on disk before its owner goes on. Saves that are asked for while one is under way share the
// next write; a failed write fails everybody who waited for it.
import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from './atomic-file.ts';
import { errnoOf } from './errors.ts';

const MODE = 0o600;

export class StateFile {
  readonly path: string;
  readonly #content: () => string;
  #current: Promise<void> = Promise.resolve();
  #waiting: Promise<void> | undefined;

  constructor(path: string, content: () => string) {
    this.path = path;
    this.#content = content;
  }

  /** Undefined when there is none. */
  async read(): Promise<string | undefined> {
    try {
      return await readFile(this.path, 'utf8');
    } catch (err) {
      if (errnoOf(err) === 'ENOENT') return undefined;
      throw err;
    }
  }

  /** Resolves when the content of this moment, or a later one, is on disk. */
  save(): Promise<void> {
    if (this.#waiting !== undefined) return this.#waiting;
    const write = (): Promise<void> => {
      this.#waiting = undefined;
      return writeFileAtomic(this.path, this.#content(), MODE);
    };
    this.#waiting = this.#current.then(write, write);
    this.#current = this.#waiting;
    return this.#waiting;
  }
}
