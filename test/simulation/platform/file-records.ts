// What stat and readdir answer, in Node's shape.
import type { Inode, Kind } from '../engine/inode.ts';

const KIND_BITS: Readonly<Record<Kind, number>> = {
  file: 0o100_000,
  dir: 0o040_000,
  symlink: 0o120_000,
  socket: 0o140_000,
  device: 0o020_000,
  block: 0o060_000,
};

class Kinds {
  readonly #kind: Kind;
  constructor(kind: Kind) {
    this.#kind = kind;
  }
  isFile(): boolean {
    return this.#kind === 'file';
  }
  isDirectory(): boolean {
    return this.#kind === 'dir';
  }
  isSymbolicLink(): boolean {
    return this.#kind === 'symlink';
  }
  isSocket(): boolean {
    return this.#kind === 'socket';
  }
  isCharacterDevice(): boolean {
    return this.#kind === 'device';
  }
  isBlockDevice(): boolean {
    return this.#kind === 'block';
  }
  isFIFO(): boolean {
    return false;
  }
}

export type SimStats = Kinds & Record<string, unknown>;

export class SimDirent extends Kinds {
  readonly name: string;
  readonly parentPath: string;
  constructor(kind: Kind, name: string, parentPath: string) {
    super(kind);
    this.name = name;
    this.parentPath = parentPath;
  }
}

class NumberStats extends Kinds {
  readonly dev: number;
  readonly ino: number;
  readonly mode: number;
  readonly nlink: number;
  readonly uid: number;
  readonly gid: number;
  readonly rdev: number;
  readonly size: number;
  readonly blksize = 4096;
  readonly blocks: number;
  readonly mtimeMs: number;
  readonly birthtimeMs: number;

  constructor(inode: Inode) {
    super(inode.kind);
    this.dev = inode.fs.device;
    this.ino = inode.ino;
    this.mode = KIND_BITS[inode.kind] | (inode.mode & 0o7777);
    this.nlink = inode.kind === 'dir' ? 2 : inode.nlink;
    this.uid = inode.uid;
    this.gid = inode.gid;
    this.rdev = inode.rdev;
    this.size = inode.kind === 'dir' ? 4096 : inode.content.length;
    this.blocks = Math.ceil(this.size / 512);
    this.mtimeMs = inode.mtimeMs;
    this.birthtimeMs = inode.birthMs;
  }

  get atimeMs(): number {
    return this.mtimeMs;
  }
  get ctimeMs(): number {
    return this.mtimeMs;
  }
  get mtime(): Date {
    return new Date(this.mtimeMs);
  }
  get atime(): Date {
    return new Date(this.mtimeMs);
  }
  get ctime(): Date {
    return new Date(this.mtimeMs);
  }
  get birthtime(): Date {
    return new Date(this.birthtimeMs);
  }
}

export function statsOf(inode: Inode, options: { readonly bigint?: boolean } = {}): SimStats {
  const numbers = new NumberStats(inode) as unknown as SimStats;
  if (options.bigint !== true) return numbers;
  const stats = new Kinds(inode.kind) as SimStats;
  for (const name of BIG) stats[name] = BigInt(Math.floor(numbers[name] as number));
  for (const name of ['mtime', 'atime', 'ctime']) stats[`${name}Ns`] = nanos(inode.mtimeMs);
  stats['birthtimeNs'] = nanos(inode.birthMs);
  return stats;
}

const BIG = 'dev ino mode nlink uid gid rdev size blksize blocks mtimeMs atimeMs ctimeMs birthtimeMs'.split(' ');

const nanos = (ms: number): bigint => BigInt(Math.floor(ms * 1000)) * 1000n;

export const direntOf = (dir: Inode, name: string, parentPath: string): SimDirent =>
  new SimDirent(dir.entries.get(name)?.kind ?? 'file', name, parentPath);
