// A manager's state on disk. Unlike other state files a damaged one stops the kubelet: nobody may guess who owns what.
import { readFile } from 'node:fs/promises';
import { errnoOf, KubeletError, messageOf } from '../../lib/errors.ts';
import { LatestFile, type LatestFileDeps } from '../../lib/latest-file.ts';
import { restoreProblem } from './checkpoint-text.ts';

export type StateFileOptions = {
  /** As messages name it: `CPU`, `memory`. */
  readonly manager: string;
  readonly path: string;
  readonly content: () => string;
};

export class ManagerStateFile {
  readonly #file: LatestFile;
  readonly #o: StateFileOptions;

  constructor(deps: LatestFileDeps, options: StateFileOptions) {
    this.#file = new LatestFile(deps, options);
    this.#o = options;
  }

  /** What an earlier run left, undefined when there was none. Fails with the way out for the operator. */
  async load<T>(parse: (text: string) => T): Promise<T | undefined> {
    const { manager, path } = this.#o;
    try {
      return parse(await readFile(path, 'utf8'));
    } catch (err) {
      if (errnoOf(err) === 'ENOENT') return undefined;
      throw startProblem(manager, messageOf(restoreProblem(manager, path, messageOf(err))));
    }
  }

  changed(): void {
    this.#file.changed();
  }

  /** Rejects when what changed is not on disk. */
  flush(): Promise<void> {
    return this.#file.flush();
  }

  /** Writes the file one last time. */
  close(): Promise<void> {
    return this.#file.close();
  }
}

export const startProblem = (manager: string, problem: string): KubeletError =>
  new KubeletError('invalid', `start ${manager.toLowerCase()} manager error: ${problem}`);
