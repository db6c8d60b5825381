// What a file system is made of: inodes, what a power cut leaves of them, and the errors of the kernel.
import { constants } from 'node:os';

export type Kind = 'file' | 'dir' | 'symlink' | 'socket' | 'device' | 'block';

export type FileSystem = {
  readonly device: number;
  readonly type: string;
  readonly source: string;
  /** Keeps what was synced over a power cut. */
  readonly durable: boolean;
  readonly capacityBytes: number;
  usedBytes: number;
  readOnly: boolean;
  /** Writes fail for want of room. */
  full: boolean;
  /** Says that there is hardly any room left; writes succeed. */
  low: boolean;
  readonly root: Inode;
  /** A directory was made: control files of a cgroup appear. */
  onMkdir?: (dir: Inode) => void;
  /** A file was written: the kernel's own meaning of it. */
  onWrite?: (file: Inode, data: Buffer) => void;
};

export class Inode {
  readonly ino: number;
  readonly kind: Kind;
  readonly fs: FileSystem;
  mode: number;
  uid = 0;
  gid = 0;
  nlink = 1;
  data: Buffer = EMPTY;
  /** Of a file that the kernel makes up when it is read. */
  generate: (() => string) | undefined;
  readonly entries = new Map<string, Inode>();
  /** Of the names in this directory, so far. */
  nameChanges = 0;
  /** Of a directory that was removed. */
  isGone = false;
  parent: Inode | undefined;
  name = '';
  target = '';
  /** Of a device. */
  rdev = 0;
  mtimeMs: number;
  readonly birthMs: number;
  /** What a power cut brings back; undefined while all of it is on disk. */
  saved: { readonly data: Buffer; readonly entries: ReadonlyMap<string, Inode> } | undefined;
  dirtySinceMs = 0;

  constructor(fs: FileSystem, kind: Kind, mode: number, ino: number, nowMs: number) {
    this.fs = fs;
    this.kind = kind;
    this.mode = mode;
    this.ino = ino;
    this.mtimeMs = nowMs;
    this.birthMs = nowMs;
  }

  get content(): Buffer {
    return this.generate === undefined ? this.data : Buffer.from(this.generate());
  }
}

const EMPTY = Buffer.alloc(0);

const TEXTS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EEXIST: 'file already exists',
  ENOTDIR: 'not a directory',
  EISDIR: 'illegal operation on a directory',
  ENOTEMPTY: 'directory not empty',
  EINVAL: 'invalid argument',
  EBADF: 'bad file descriptor',
  ELOOP: 'too many symbolic links encountered',
  ENOSPC: 'no space left on device',
  EROFS: 'read-only file system',
  EBUSY: 'resource busy or locked',
  EXDEV: 'cross-device link not permitted',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EAGAIN: 'resource temporarily unavailable',
  EIO: 'i/o error',
  ENXIO: 'no such device or address',
};

class SystemError extends Error {
  readonly code: string;
  readonly errno: number;
  readonly syscall: string;
  readonly path?: string;

  constructor(code: string, syscall: string, path: string | undefined) {
    super(`${code}: ${TEXTS[code] ?? code}, ${syscall}${path === undefined ? '' : ` '${path}'`}`);
    this.code = code;
    this.errno = -(constants.errno[code as keyof typeof constants.errno] ?? 1);
    this.syscall = syscall;
    if (path !== undefined) this.path = path;
  }
}

export function fail(code: string, syscall: string, path?: string): never {
  throw new SystemError(code, syscall, path);
}
