// The directory of a container's log, held open. Pods with a writable hostPath there can put links in the place of files
// and of directories: operations go through the descriptor, and neither `<pod>` nor `<container>` of
// `<root>/<pod>/<container>/0.log` may be a link.
import { link, open, type FileHandle } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { EntryName } from '../host/files/entry-name.ts';
import { isLarge, NEW, OpenDir } from '../host/files/open-dir.ts';
import { openRegular } from '../host/files/open-regular.ts';
import { removeTree } from '../host/files/remove-tree.ts';
import { KubeletError } from '../lib/errors.ts';

/** Names are given as paths, of which only the last element counts. */
export class LogDir {
  readonly #dir: OpenDir;

  private constructor(dir: OpenDir) {
    this.#dir = dir;
  }

  static async using<T>(logPath: string, work: (dir: LogDir) => Promise<T>): Promise<T> {
    const dir = await openContainerDir(dirname(logPath));
    try {
      return await work(new LogDir(dir));
    } finally {
      await dir.close();
    }
  }

  /** Everything beside a log that carries its name, oldest first; not more than `MAX_SIBLINGS`. */
  async siblings(log: string): Promise<readonly string[]> {
    const base = `${basename(log)}.`;
    const names = await this.#dir.names((name) => name.startsWith(base), MAX_SIBLINGS);
    return names.sort().map((name) => `${dirname(log)}/${name}`);
  }

  /** The size of a regular file; undefined when there is none of the name. */
  async size(path: string): Promise<number | undefined> {
    const stat = await this.#dir.lstat(basename(path));
    if (stat === undefined) return undefined;
    if (!stat.isFile()) throw new Error(`${path} is not a regular file`);
    return stat.size;
  }

  read(path: string): Promise<FileHandle> {
    return openRegular(this.#dir.at(basename(path)));
  }

  /** A new file; what was there under the name is removed, not written to. */
  async create(path: string, mode: number): Promise<FileHandle> {
    await this.#dir.unlink(basename(path));
    return open(this.#dir.at(basename(path)), NEW, mode);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#dir.rename(basename(from), basename(to));
  }

  link(from: string, to: string): Promise<void> {
    return link(this.#dir.at(basename(from)), this.#dir.at(basename(to)));
  }

  /** A log and everything beside it that carries its name, directories too. */
  async removeAll(log: string, signal: AbortSignal): Promise<void> {
    const base = basename(log);
    const isOfLog = (name: EntryName): boolean => name === base || name.toString().startsWith(`${base}.`);
    const stat = await this.#dir.stat();
    // A large directory may pass over names while others are removed from it.
    for (let left = true; left;) {
      let [seen, removed] = [0, 0];
      for await (const names of this.#dir.batches(stat))
        for (const name of names.filter(isOfLog)) {
          seen++;
          if (await this.#remove(name, signal)) removed++;
        }
      if (seen > 0 && removed === 0)
        throw new KubeletError('conflict', `logs beside ${log} cannot be deleted: they are listed but not found`);
      left = seen > 0 && isLarge(stat);
    }
  }

  /** False: there was nothing of the name. */
  async #remove(name: EntryName, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    const found = await this.#dir.removeFile(name);
    if (found === 'directory') await removeTree(this.#dir, name, signal);
    return found !== 'gone';
  }

  /** Gone is success. */
  remove(path: string): Promise<void> {
    return this.#dir.unlink(basename(path));
  }
}

const MAX_SIBLINGS = 1000;

async function openContainerDir(path: string): Promise<OpenDir> {
  const podDir = dirname(path);
  // Where the pods' logs are is the administrator's choice, links included.
  const root = await OpenDir.follow(dirname(podDir));
  try {
    const pod = await root.openDir(basename(podDir));
    try {
      const dir = await pod.openDir(basename(path));
      root.closeNow(); // that one is on the same filesystem
      return dir;
    } finally {
      pod.closeNow();
    }
  } catch (err) {
    await root.close();
    throw err;
  }
}
