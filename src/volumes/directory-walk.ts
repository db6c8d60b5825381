// A walk through a directory in this process: good for small ones, 30 µs of processor time for each entry. It never enters
// another mount and follows no link.
import { join } from 'node:path';
import { OpenDir } from '../host/files/open-dir.ts';
import type { MountTable } from '../host/mounts/mount-table.ts';
import { errnoOf } from '../lib/errors.ts';
import type { Tally } from './tally.ts';

/** Every level holds a descriptor and the names of a directory. */
const MAX_DEPTH = 128;

/** False: it holds more than `maxEntries`, or some of it lies too deep. The tally then has what was seen. */
export async function walkDirectory(
  path: string,
  mounts: MountTable,
  tally: Tally,
  signal: AbortSignal,
  maxEntries = Infinity,
): Promise<boolean> {
  const walk = new DirectoryWalk(mounts, tally, signal, maxEntries);
  await OpenDir.using(path, (dir) => walk.add(dir, path, 0));
  return walk.isWhole;
}

class DirectoryWalk {
  isWhole = true;
  readonly #mounts: MountTable;
  readonly #tally: Tally;
  readonly #signal: AbortSignal;
  #left: number;

  constructor(mounts: MountTable, tally: Tally, signal: AbortSignal, maxEntries: number) {
    this.#mounts = mounts;
    this.#tally = tally;
    this.#signal = signal;
    this.#left = maxEntries;
  }

  async add(dir: OpenDir, path: string, depth: number): Promise<void> {
    const own = await dir.stat();
    this.#tally.add(own.blocks);
    for await (const name of dir.each()) {
      this.#signal.throwIfAborted();
      if (this.#left-- <= 0 || depth > MAX_DEPTH) {
        this.isWhole = false;
        return;
      }
      const child = join(path, name);
      if (this.#mounts.at(child) !== undefined) continue;
      const stat = await dir.lstat(name);
      if (stat === undefined || stat.dev !== own.dev) continue;
      if (stat.isDirectory()) await this.#enter(dir, name, child, depth);
      else this.#tally.add(stat.blocks, stat.nlink, stat.ino);
    }
  }

  async #enter(parent: OpenDir, name: string, path: string, depth: number): Promise<void> {
    let dir: OpenDir;
    try {
      dir = await parent.openDir(name);
    } catch (err) {
      // Removed or replaced while we looked.
      if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(err) ?? '')) return;
      throw err;
    }
    try {
      await this.add(dir, path, depth + 1);
    } finally {
      await dir.close();
    }
  }
}
