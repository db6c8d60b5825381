// Finds a path inside a volume whose content a container may be changing at this moment. The walk holds every directory
// on the way open and takes one element at a time, without following links: a link is read and its target walked by the
// same rules, `..` steps back along the held directories, and stepping above the volume or a link to an absolute path
// ends the walk. A rename at any moment changes which file is found, never whether it is in the volume.
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import { OpenDir, type PinnedFile } from './open-dir.ts';

const MAX_LINKS = 40;

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
  const held: OpenDir[] = [await OpenDir.open(root)];
  try {
    return await new Walk(held, path, makeMissing).run();
  } finally {
    // The volume's own directory last: while it is open, closing the others waits for nobody.
    for (const dir of held.splice(1)) dir.closeNow();
    await held[0]?.close();
  }
}

class Walk {
  readonly #held: OpenDir[];
  readonly #path: string;
  readonly #makeMissing: boolean;
  readonly #rest: string[];
  #links = 0;
  /** Of the volume's own directory. */
  #mode: number | undefined;

  constructor(held: OpenDir[], path: string, makeMissing: boolean) {
    this.#held = held;
    this.#path = path;
    this.#makeMissing = makeMissing;
    if (path.startsWith('/')) throw escape(path);
    this.#rest = elements(path);
    if (this.#rest.includes('..')) throw escape(path);
  }

  async run(): Promise<PinnedFile> {
    for (;;) {
      const name = this.#rest.shift();
      if (name === undefined) return this.#pinHere();
      if (name === '..') {
        await this.#stepBack();
        continue;
      }
      const found = await this.#step(name);
      if (found !== undefined) return found;
    }
  }

  get #here(): OpenDir {
    const dir = this.#held.at(-1);
    if (dir === undefined) throw escape(this.#path);
    return dir;
  }

  async #stepBack(): Promise<void> {
    if (this.#held.length <= 1) throw escape(this.#path);
    this.#held.pop()?.closeNow();
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
      this.#held.push(await OpenDir.open(`/proc/self/fd/${pinned.fd}/.`));
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
    this.#mode ??= ((await this.#held[0]?.stat())?.mode ?? 0o750) & 0o7777;
    let whole = true;
    try {
      whole = await this.#here.make(name, this.#mode);
    } catch (err) {
      if (errnoOf(err) !== 'EEXIST') throw err;
    }
    const pinned = await this.#here.pin(name);
    try {
      // A container may have put a link there meanwhile, which a chmod would follow.
      if (!whole && (await pinned.stat()).isDirectory()) await pinned.chmod(this.#mode);
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
  }

  /** The path ended in `.`, `..` or nothing: the directory being held is what was meant. */
  #pinHere(): Promise<PinnedFile> {
    return this.#here.pinSelf();
  }
}

const elements = (path: string): string[] => path.split('/').filter((e) => e !== '' && e !== '.');
