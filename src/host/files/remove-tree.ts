// Removes a name and all beneath it, in passes: what cannot be removed does not keep the rest, and a pass that changed
// nothing is the last. Descriptors and memory are bounded, whatever the tree is like.
import { errnoOf, isFault, KubeletError } from '../../lib/errors.ts';
import type { EntryName } from './entry-name.ts';
import type { Entry } from './file-calls.ts';
import type { OpenDir } from './open-dir.ts';

/** Deleting a large volume must leave the file system's threads to others too. */
const PARALLEL = 3;
/** Every level holds two descriptors and the names of one read. A directory below is moved up first. */
const MAX_DEPTH = 48;
/** Passes over one directory that something else keeps writing to. */
const MAX_PASSES = 16;
/** Names to move a deep directory to. One may be taken, and is removed by the pass after. */
const MAX_NAMES = 100;

/** Never follows a symlink, never enters another filesystem, refuses a mount point. Gone is success. */
export async function removeTree(parent: OpenDir, name: EntryName, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const found = await parent.removeDir(name);
  if (found === 'file') await parent.removeFile(name);
  else if (found === 'full') await new Removal(parent, name, signal).run();
}

type Pass = { removed: number };

class Removal {
  readonly #parent: OpenDir;
  readonly #name: EntryName;
  readonly #signal: AbortSignal;
  #top: OpenDir | undefined;
  #device = 0;
  /** Directories that moved up. The next pass over the whole finds them. */
  #lifted = 0;
  #tried = 0;
  /** Why something is left. */
  #failure: unknown;

  constructor(parent: OpenDir, name: EntryName, signal: AbortSignal) {
    this.#parent = parent;
    this.#name = name;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    this.#device = (await this.#parent.stat()).dev;
    const { isGone } = await this.#removeFull(this.#parent, this.#name, 0);
    if (!isGone) throw this.#failure;
  }

  /** `changed`: how much was removed or moved, of what was in it. */
  async #removeFull(parent: OpenDir, name: EntryName, depth: number): Promise<{ isGone: boolean; changed: number }> {
    const dir = await parent.openDir(name);
    if (depth === 0) this.#top = dir;
    try {
      const stat = await dir.stat();
      if (stat.dev !== this.#device) throw parent.mountPoint(name);
      let changed = 0;
      for (let passes = 1; ; passes++) {
        if (depth === 0) this.#failure = undefined;
        const pass: Pass = { removed: 0 };
        const before = this.#lifted;
        for await (const batch of dir.entries(stat)) await this.#removeBatch(dir, batch, depth, pass);
        changed += pass.removed;
        if ((await parent.removeDir(name)) !== 'full') return { isGone: true, changed: changed + 1 };
        if (pass.removed > 0 && (this.#lifted > before || passes < MAX_PASSES)) continue;
        this.#failure ??= notEmptied(dir.path, pass);
        return { isGone: false, changed };
      }
    } finally {
      dir.closeNow();
    }
  }

  async #removeBatch(dir: OpenDir, entries: readonly Entry[], depth: number, pass: Pass): Promise<void> {
    const directories = entries.filter((entry) => entry.isDirectory).map(({ name }) => name);
    const files = entries.filter((entry) => !entry.isDirectory);
    const removeFile = ({ name }: Entry): Promise<void> =>
      this.#attempt(async () => {
        const found = await dir.removeFile(name);
        if (found === 'removed') pass.removed++;
        else if (found === 'directory') directories.push(name);
      });
    for (let i = 0; i < files.length; i += PARALLEL) {
      this.#signal.throwIfAborted();
      await Promise.all(files.slice(i, i + PARALLEL).map(removeFile));
    }
    // One by one, or the open descriptors of a wide and deep tree multiply.
    for (const name of directories) {
      this.#signal.throwIfAborted();
      await this.#attempt(() => this.#removeDir(dir, name, depth, pass));
    }
  }

  async #removeDir(dir: OpenDir, name: EntryName, depth: number, pass: Pass): Promise<void> {
    const found = await dir.removeDir(name);
    if (found === 'removed') pass.removed++;
    if (found !== 'full') return;
    if (depth + 1 >= MAX_DEPTH) {
      await this.#lift(dir, name);
      pass.removed++;
    } else pass.removed += (await this.#removeFull(dir, name, depth + 1)).changed;
  }

  /** A tree deeper than the open descriptors allow is taken apart from the top. */
  async #lift(from: OpenDir, name: EntryName): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#top?.takeFrom(from, name, `..removing.${this.#tried++}`);
        this.#lifted++;
        return;
      } catch (err) {
        const isTaken = ['EEXIST', 'ENOTEMPTY', 'ENOTDIR'].includes(errnoOf(err) ?? '');
        if (!isTaken || tries >= MAX_NAMES) throw err;
      }
    }
  }

  /** An immutable file or one on a broken disk does not keep the others. A mount point ends it all. */
  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (err) {
      this.#signal.throwIfAborted();
      if (isFault(err)) throw err;
      this.#failure ??= err;
    }
  }
}

const notEmptied = (path: string, { removed }: Pass): KubeletError =>
  new KubeletError(
    'conflict',
    removed === 0
      ? `cannot delete ${path}: names in it are listed but not found`
      : `cannot delete ${path}: something else writes to it`,
  );
