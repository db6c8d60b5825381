// Pure. Adds up what a directory holds: allocated blocks, so that holes count nothing, and a file with several names once.

export type DirectorySize = { readonly bytes: number; readonly inodes: number };

const BLOCK = 512;
/** How many files with several names are remembered; of further ones every name counts its share. */
const MAX_REMEMBERED = 100_000;

export class Tally {
  #blocks = 0;
  #inodes = 0;
  readonly #linked = new Set<number>();
  readonly #maxRemembered: number;

  constructor(maxRemembered = MAX_REMEMBERED) {
    this.#maxRemembered = maxRemembered;
  }

  /** `names`: how many the file has; a directory has one, whatever its link count. */
  add(blocks: number, names = 1, inode = 0): void {
    if (names > 1 && this.#linked.has(inode)) return;
    const isShared = names > 1 && this.#linked.size >= this.#maxRemembered;
    if (names > 1 && !isShared) this.#linked.add(inode);
    this.#blocks += isShared ? blocks / names : blocks;
    this.#inodes += isShared ? 1 / names : 1;
  }

  get size(): DirectorySize {
    return { bytes: Math.round(this.#blocks * BLOCK), inodes: Math.round(this.#inodes) };
  }
}

export const largerOf = (a: DirectorySize, b: DirectorySize): DirectorySize => ({
  bytes: Math.max(a.bytes, b.bytes),
  inodes: Math.max(a.inodes, b.inodes),
});
