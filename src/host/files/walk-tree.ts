// A walk over everything beneath a directory, in which a container may be changing it. Descriptors, names in memory and
// depth are bounded: the directories further up are closed and found again by `..`, as the same ones or not at all.
import type { Stats } from 'node:fs';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import type { EntryName } from './entry-name.ts';
import { isLarge, type OpenDir } from './open-dir.ts';

export type WalkBounds = {
  /** Directories that are open, and as many large ones that are being read. */
  readonly held: number;
  readonly levels: number;
  /** Of directories that are still to be entered. */
  readonly names: number;
};

const BOUNDS: WalkBounds = { held: 64, levels: 50_000, names: 1_000_000 };

export type Visitor = {
  /** A name, of a directory before it is entered. */
  readonly entry: (dir: OpenDir, name: EntryName, stat: Stats) => Promise<void> | void;
  /** A directory of which everything was visited. The last is the root. */
  readonly leave?: (dir: OpenDir, stat: Stats) => Promise<void> | void;
  /** Whether a name, a directory or not, is of the tree. `path` is relative to the root. */
  readonly wants?: (stat: Stats, depth: number, path: () => string) => boolean;
  /** Whether the walk ends here. */
  readonly isEnough?: () => boolean;
};

type Level = {
  readonly name: EntryName;
  readonly stat: Stats;
  dir: OpenDir | undefined;
  batches: AsyncGenerator<readonly EntryName[], void, undefined> | undefined;
  /** Directories that are still to be entered. */
  readonly pending: EntryName[];
};

/** Children before their directory. False: `isEnough` ended it. `stat` is the root's own. */
export const walkTree = (
  root: OpenDir,
  stat: Stats,
  visitor: Visitor,
  signal: AbortSignal,
  bounds: Partial<WalkBounds> = {},
): Promise<boolean> => new TreeWalk(root, visitor, signal, { ...BOUNDS, ...bounds }).run(stat);

class TreeWalk {
  readonly #root: OpenDir;
  readonly #visitor: Visitor;
  readonly #signal: AbortSignal;
  readonly #bounds: WalkBounds;
  readonly #levels: Level[] = [];
  #reading = 0;
  #names = 0;
  #isEnough = false;

  constructor(root: OpenDir, visitor: Visitor, signal: AbortSignal, bounds: WalkBounds) {
    this.#bounds = bounds;
    this.#root = root;
    this.#visitor = visitor;
    this.#signal = signal;
  }

  async run(stat: Stats): Promise<boolean> {
    try {
      this.#enter(this.#root, '', stat);
      while (!this.#isEnough) {
        const level = this.#levels.at(-1);
        if (level?.dir === undefined) return true;
        await this.#step(level, level.dir);
      }
      return false;
    } finally {
      for (const level of this.#levels.toReversed()) {
        await level.batches?.return();
        this.#close(level);
      }
    }
  }

  async #step(level: Level, dir: OpenDir): Promise<void> {
    this.#signal.throwIfAborted();
    const next = level.pending.pop();
    if (next !== undefined) {
      this.#names--;
      return this.#down(dir, next);
    }
    if (level.batches !== undefined) return this.#read(level, dir, level.batches);
    await this.#visitor.leave?.(dir, level.stat);
    await this.#up(level, dir);
  }

  /** Visits the next names of a directory, all of them where too many directories are being read already. */
  async #read(level: Level, dir: OpenDir, batches: NonNullable<Level['batches']>): Promise<void> {
    do {
      const next = await batches.next();
      if (next.done === true) {
        level.batches = undefined;
        if (isLarge(level.stat)) this.#reading--;
        return;
      }
      for (const name of next.value) {
        this.#signal.throwIfAborted();
        await this.#look(level, dir, name);
        if (this.#isEnough) return;
      }
    } while (this.#reading > this.#bounds.held || !isLarge(level.stat));
  }

  async #look(level: Level, dir: OpenDir, name: EntryName): Promise<void> {
    if ((this.#isEnough = this.#visitor.isEnough?.() === true)) return;
    const stat = await dir.lstat(name);
    if (stat === undefined) return;
    if (this.#visitor.wants?.(stat, this.#levels.length, () => this.#pathOf(name)) === false) return;
    await this.#visitor.entry(dir, name, stat);
    if (!stat.isDirectory()) return;
    if (++this.#names > this.#bounds.names)
      throw new KubeletError('exhausted', 'too many directories lie beside each other, too deep');
    level.pending.push(name);
  }

  async #down(dir: OpenDir, name: EntryName): Promise<void> {
    if (this.#levels.length >= this.#bounds.levels)
      throw new KubeletError('exhausted', `some of it lies too deep, below ${this.#bounds.levels} levels`);
    const child = await dir.openDir(name).catch(unlessReplaced);
    if (child === undefined) return;
    try {
      this.#enter(child, name, await child.stat());
    } catch (err) {
      child.closeNow();
      throw err;
    }
    const far = this.#levels.at(-1 - this.#bounds.held);
    // One that is being read stays open for as long, the root is not ours.
    if (far !== undefined && far.batches === undefined && far.dir !== this.#root) this.#close(far);
  }

  #enter(dir: OpenDir, name: EntryName, stat: Stats): void {
    this.#levels.push({ name, stat, dir, batches: dir.batches(stat), pending: [] });
    if (isLarge(stat)) this.#reading++;
  }

  async #up(level: Level, dir: OpenDir): Promise<void> {
    const above = this.#levels.at(-2);
    if (above !== undefined && above.dir === undefined) above.dir = await dir.openParentAs(above.stat);
    this.#levels.pop();
    this.#close(level);
  }

  #close(level: Level): void {
    // The root is open: closing another directory of its file system waits for nothing.
    if (level.dir !== this.#root) level.dir?.closeNow();
    level.dir = undefined;
  }

  #pathOf(name: EntryName): string {
    const names = [...this.#levels.slice(1).map((level) => level.name), name];
    return Buffer.concat(names.flatMap((each, i) => [Buffer.from(i === 0 ? '' : '/'), Buffer.from(each)])).toString();
  }
}

/** Removed, or replaced by something else, since it was listed. */
function unlessReplaced(err: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(err) ?? '')) throw err;
}
