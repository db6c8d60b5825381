// What stat and readdir answer, in Node's shape.
import type { Inode, Kind } from '../engine/inode.ts';

const KIND_BITS: Readonly<Record<Kind, number>> = {
  file: 0o100_000,
  dir: 0o040_000,
  symlink: 0o120_000,
  socket: 0o140_000,
  device: 0o020_000,
};

class Kinds {
  readonly #kind: Kind;
  constructor(kind: Kind) {
    this.#kind = kind;
  }
  isFile = (): boolean => this.#kind === 'file';
  isDirectory = (): boolean => this.#kind === 'dir';
  isSymbolicLink = (): boolean => this.#kind === 'symlink';
  isSocket = (): boolean => this.#kind === 'socket';
  isCharacterDevice = (): boolean => this.#kind === 'device';
  isBlockDevice = (): boolean => false;
  isFIFO = (): boolean => false;
}

export type SimStats = Kinds & Record<string, unknown>;
export type SimDirent = Kinds & { readonly name: string; readonly parentPath: string };

export function statsOf(inode: Inode, options: { readonly bigint?: boolean } = {}): SimStats {
  const size = inode.kind === 'dir' ? 4096 : inode.content.length;
  const numbers = {
    dev: inode.fs.device,
    ino: inode.ino,
    mode: KIND_BITS[inode.kind] | (inode.mode & 0o7777),
    nlink: inode.kind === 'dir' ? 2 : inode.nlink,
    uid: inode.uid,
    gid: inode.gid,
    rdev: 0,
    size,
    blksize: 4096,
    blocks: Math.ceil(size / 512),
    mtimeMs: inode.mtimeMs,
    atimeMs: inode.mtimeMs,
    ctimeMs: inode.mtimeMs,
    birthtimeMs: inode.birthMs,
  };
  const stats = new Kinds(inode.kind) as SimStats;
  if (options.bigint !== true)
    return Object.assign(stats, numbers, {
      mtime: new Date(inode.mtimeMs),
      atime: new Date(inode.mtimeMs),
      ctime: new Date(inode.mtimeMs),
      birthtime: new Date(inode.birthMs),
    });
  for (const [name, value] of Object.entries(numbers)) stats[name] = BigInt(Math.floor(value));
  for (const name of ['mtime', 'atime', 'ctime']) stats[`${name}Ns`] = nanos(inode.mtimeMs);
  stats['birthtimeNs'] = nanos(inode.birthMs);
  return stats;
}

const nanos = (ms: number): bigint => BigInt(Math.floor(ms * 1000)) * 1000n;

export function direntOf(dir: Inode, name: string, parentPath: string): SimDirent {
  const kind = dir.entries.get(name)?.kind ?? 'file';
  return Object.assign(new Kinds(kind), { name, parentPath });
}
