// Finds a path inside a volume whose content a container may be changing at this moment. The walk takes one
// element at a time, without following links: a link is read and its target walked by the same rules, `..` steps back along
// the directories on the way, and stepping above the volume or a link to an absolute path ends the walk. It holds the last
// of the directories open. A rename at any moment changes which file is found, never whether it is in the volume.
import type { Stats } from 'node:fs';
import { PATH_MAX } from '../../core/bounds.ts';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import { OpenDir, type PinnedFile } from './open-dir.ts';

const MAX_LINKS = 40;
const MAX_PATH = PATH_MAX - 1;
/** As many as a path of that length can have, those behind links included. */
const MAX_ELEMENTS = PATH_MAX / 2;
const MAX_OPEN = 64;

const escape = (path: string): KubeletError =>
  new KubeletError('denied', `subpath ${JSON.stringify(path)} not within volume path`);

/**
 * Pins what `path` leads to beneath `root`; directories that are missing are made with the root's mode. The caller
 * closes it. `root` itself is trusted up to its last element, which for a hostPath may be a link the administrator made:
 * pass it resolved.
 */
export const makeBeneath = (root: string, path: string): Promise<PinnedFile> => walk(root, path, true);

/** The same for what must be there already: fails with ENOENT when it is not. */
export const findBeneath = (root: string, path: string): Promise<PinnedFile> => walk(root, path, false);

async function walk(root: string, path: string, makeMissing: boolean): Promise<PinnedFile> {
  checkPathLength(path);
  return OpenDir.using(root, async (dir) => new Walk(dir, await dir.stat(), path, makeMissing).run());
}

/** As the kernel has it, of a path that it is given as a whole. */
export function checkPathLength(path: string): void {
  if (path.length > MAX_PATH || Buffer.byteLength(path) > MAX_PATH)
    throw new KubeletError('invalid', `path is longer than ${MAX_PATH} bytes: ${JSON.stringify(path.slice(0, 64))}…`);
}

/** Closed where many are below it; `..` leads back to it. */
type Level = { readonly stat: Stats; dir: OpenDir | undefined };

class Walk {
  readonly #held: [Level, ...Level[]];
  readonly #root: OpenDir;
  readonly #path: string;
  readonly #makeMissing: boolean;
  readonly #rest: string[];
  #links = 0;

  constructor(root: OpenDir, stat: Stats, path: string, makeMissing: boolean) {
    this.#root = root;
    this.#held = [{ stat, dir: root }];
    this.#path = path;
    this.#makeMissing = makeMissing;
    if (path.startsWith('/')) throw escape(path);
    this.#rest = elements(path);
    if (this.#rest.includes('..')) throw escape(path);
  }

  async run(): Promise<PinnedFile> {
    try {
      for (;;) {
        const name = this.#rest.shift();
        if (name === undefined) return await this.#pinHere();
        if (name === '..') {
          await this.#stepBack();
          continue;
        }
        const found = await this.#step(name);
        if (found !== undefined) return found;
      }
    } finally {
      // The volume's own directory is open: closing the others waits for nothing.
      for (const { dir } of this.#held.slice(1)) dir?.closeNow();
    }
  }

  get #here(): OpenDir {
    const dir = this.#held.at(-1)?.dir;
    if (dir === undefined) throw escape(this.#path);
    return dir;
  }

  async #stepBack(): Promise<void> {
    const above = this.#held.at(-2);
    if (above === undefined) throw escape(this.#path);
    above.dir ??= await this.#here.openParentAs(above.stat);
    this.#held.pop()?.dir?.closeNow();
  }

  #enter(stat: Stats, dir: OpenDir): void {
    this.#held.push({ stat, dir });
    const far = this.#held.at(-1 - MAX_OPEN);
    if (far === undefined || far.dir === this.#root) return;
    far.dir?.closeNow();
    far.dir = undefined;
  }

  /** Takes one element. The result is the end of the walk, if this was it. */
  async #step(name: string): Promise<PinnedFile | undefined> {
    const pinned = await this.#pinOrMake(name);
    let keep = false;
    try {
      const stat = await pinned.stat();
      if (stat.isSymbolicLink()) {
        await this.#splice(name);
        return undefined;
      }
      if (this.#rest.length === 0) {
        keep = true;
        return pinned;
      }
      // Opened through the pinned descriptor, so that it is the entry just looked at and no other.
      this.#enter(stat, await this.#here.openPinned(pinned, name));
      return undefined;
    } finally {
      if (!keep) pinned.closeNow();
    }
  }

  async #pinOrMake(name: string): Promise<PinnedFile> {
    try {
      return await this.#here.pin(name);
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT' || !this.#makeMissing) throw err;
    }
    const mode = this.#held[0].stat.mode & 0o7777;
    let whole = true;
    try {
      whole = await this.#here.make(name, mode);
    } catch (err) {
      if (errnoOf(err) !== 'EEXIST') throw err;
    }
    const pinned = await this.#here.pin(name);
    try {
      // A container may have put a link there meanwhile, which a chmod would follow.
      if (!whole && (await pinned.stat()).isDirectory()) await pinned.chmod(mode);
      return pinned;
    } catch (err) {
      pinned.closeNow();
      throw err;
    }
  }

  async #splice(name: string): Promise<void> {
    if (++this.#links > MAX_LINKS) throw new KubeletError('invalid', `too many links in ${JSON.stringify(this.#path)}`);
    const target = await this.#here.readlink(name);
    if (target === undefined || target.startsWith('/')) throw escape(this.#path);
    this.#rest.unshift(...elements(target));
    if (this.#rest.length + this.#held.length > MAX_ELEMENTS)
      throw new KubeletError(
        'invalid',
        `links make more than ${MAX_ELEMENTS} elements of ${JSON.stringify(this.#path)}`,
      );
  }

  /** The path ended in `.`, `..` or nothing: the directory being held is what was meant. */
  #pinHere(): Promise<PinnedFile> {
    return this.#here.pinSelf();
  }
}

const elements = (path: string): string[] => path.split('/').filter((e) => e !== '' && e !== '.');
