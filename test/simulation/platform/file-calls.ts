// The calls of node:fs on the simulated machine's files, each as a function that acts at once. `fs.ts` and `fs-promises.ts`
// offer them in Node's three ways.
import realFs, { constants } from 'node:fs';
import { fail, type Inode } from '../engine/inode.ts';
import { machine } from '../engine/machine.ts';
import { direntOf, statsOf, type SimDirent, type SimStats } from './file-records.ts';

const { O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW, O_WRONLY, O_RDWR } = constants;
const O_PATH = 0x200000;

type Encoding = string | { readonly encoding?: string | null; readonly flag?: string; readonly mode?: number } | null;
type Path = string | number | URL;

const FLAGS: Readonly<Record<string, number>> = {
  r: 0,
  'r+': O_RDWR,
  w: O_WRONLY | O_CREAT | O_TRUNC,
  wx: O_WRONLY | O_CREAT | O_EXCL,
  'w+': O_RDWR | O_CREAT | O_TRUNC,
  a: O_WRONLY | O_CREAT | O_APPEND,
  'a+': O_RDWR | O_CREAT | O_APPEND,
  ax: O_WRONLY | O_CREAT | O_APPEND | O_EXCL,
};

const text = (path: Path): string => (path instanceof URL ? path.pathname : String(path));
const tree = () => machine().files;
const inodeOf = (path: Path, syscall: string, follow = true): Inode =>
  typeof path === 'number' ? tree().descriptor(path, syscall).inode : tree().get(text(path), syscall, follow);

function open(path: Path, flags: string | number = 'r', mode = 0o666): number {
  const bits = typeof flags === 'number' ? flags : (FLAGS[flags] ?? 0);
  const follow = (bits & O_NOFOLLOW) === 0;
  const found = tree().find(text(path), 'open', follow);
  let { inode } = found;
  if (inode === undefined) {
    if ((bits & O_CREAT) === 0) return fail('ENOENT', 'open', text(path));
    inode = tree().create(found.parent, found.name, 'file', mode & ~0o022, 'open');
  } else {
    if ((bits & O_CREAT) !== 0 && (bits & O_EXCL) !== 0) fail('EEXIST', 'open', text(path));
    if (inode.kind === 'symlink' && (bits & O_PATH) === 0) fail('ELOOP', 'open', text(path));
    if (inode.kind === 'socket' && (bits & O_PATH) === 0) fail('ENXIO', 'open', text(path));
    if ((bits & O_DIRECTORY) !== 0 && inode.kind !== 'dir') fail('ENOTDIR', 'open', text(path));
    const writes = (bits & (O_WRONLY | O_RDWR)) !== 0 && (bits & O_PATH) === 0;
    if (writes && inode.kind === 'dir') fail('EISDIR', 'open', text(path));
    if (writes && inode.fs.readOnly) fail('EROFS', 'open', text(path));
    if (writes && (bits & O_TRUNC) !== 0 && inode.fs.onWrite === undefined)
      tree().write(inode, Buffer.alloc(0), 'open');
  }
  return tree().hold(inode, found.path, (bits & O_APPEND) !== 0);
}

const bytesOf = (data: string | Uint8Array): Buffer =>
  typeof data === 'string' ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength);

/** The program's own files (its version, tables of the embedded API server) are those of the real machine. */
const PROGRAM = new URL('../../../', import.meta.url).pathname;

function readFile(path: Path, options: Encoding = null): string | Buffer {
  if (typeof path !== 'number' && text(path).startsWith(PROGRAM))
    return realFs.readFileSync(text(path), options as 'utf8');
  const inode = inodeOf(path, 'open');
  if (inode.kind === 'dir') fail('EISDIR', 'read');
  const encoding = typeof options === 'string' ? options : options?.encoding;
  const content = inode.content;
  return encoding === undefined || encoding === null ? Buffer.from(content) : content.toString(encoding as 'utf8');
}

function writeFile(path: Path, data: string | Uint8Array, options: Encoding = null): void {
  const more = typeof options === 'object' && options !== null ? options : {};
  const fd = typeof path === 'number' ? path : open(path, more.flag ?? 'w', more.mode);
  try {
    const held = tree().descriptor(fd, 'write');
    const old = held.append || typeof path === 'number' ? held.inode.data : Buffer.alloc(0);
    const kept = held.append ? old : old.subarray(0, held.position);
    tree().write(held.inode, Buffer.concat([kept, bytesOf(data)]), 'write');
  } finally {
    if (typeof path !== 'number') tree().close(fd);
  }
}

function read(
  fd: number,
  into: Uint8Array,
  offset = 0,
  length = into.byteLength,
  position: number | bigint | null = null,
) {
  const held = tree().descriptor(fd, 'read');
  if (held.inode.kind === 'dir') fail('EISDIR', 'read');
  if (held.inode.kind === 'device') fail('EAGAIN', 'read');
  const at = position === null || Number(position) < 0 ? held.position : Number(position);
  const part = held.inode.content.subarray(at, at + length);
  into.set(part, offset);
  if (position === null || Number(position) < 0) held.position += part.length;
  return part.length;
}

function write(fd: number, data: string | Uint8Array): number {
  const held = tree().descriptor(fd, 'write');
  const bytes = bytesOf(data);
  const old = held.inode.data;
  const at = held.append ? old.length : held.position;
  tree().write(held.inode, Buffer.concat([old.subarray(0, at), bytes, old.subarray(at + bytes.length)]), 'write');
  held.position = at + bytes.length;
  return bytes.length;
}

function truncate(fd: number, length = 0): void {
  const { inode } = tree().descriptor(fd, 'ftruncate');
  const kept = Buffer.alloc(length);
  inode.data.copy(kept);
  tree().write(inode, kept, 'write');
}

function mkdir(path: Path, options: number | { recursive?: boolean; mode?: number } = {}): string | undefined {
  const o = typeof options === 'number' ? { mode: options } : options;
  const mode = (o.mode ?? 0o777) & ~0o022;
  if (o.recursive !== true) {
    tree().mkdir(text(path), mode);
    return undefined;
  }
  const parts = text(path).split('/').filter(Boolean);
  let first: string | undefined;
  for (let i = 1; i <= parts.length; i++) {
    const each = `/${parts.slice(0, i).join('/')}`;
    const { inode } = tree().find(each, 'mkdir');
    if (inode === undefined) {
      tree().mkdir(each, mode);
      first ??= each;
    } else if (inode.kind !== 'dir') fail(i === parts.length ? 'EEXIST' : 'ENOTDIR', 'mkdir', each);
  }
  return first;
}

function readdir(path: Path, options?: { withFileTypes?: boolean } | string): string[] | SimDirent[] {
  const dir = inodeOf(path, 'scandir');
  if (dir.kind !== 'dir') fail('ENOTDIR', 'scandir', text(path));
  const names = [...dir.entries.keys()];
  if (typeof options !== 'object' || options.withFileTypes !== true) return names;
  return names.map((name) => direntOf(dir, name, text(path)));
}

function rm(path: Path, options: { recursive?: boolean; force?: boolean } = {}): void {
  let inode: Inode | undefined;
  try {
    inode = tree().find(text(path), 'rm', false).inode;
  } catch (err) {
    if (options.force !== true) throw err;
  }
  if (inode === undefined) {
    if (options.force !== true) fail('ENOENT', 'rm', text(path));
    return;
  }
  if (inode.kind !== 'dir') return tree().unlink(text(path));
  if (options.recursive !== true) fail('EISDIR', 'rm', text(path));
  for (const name of inode.entries.keys()) rm(`${text(path)}/${name}`, options);
  tree().rmdir(text(path));
}

const change = (inode: Inode, fields: Partial<Pick<Inode, 'mode' | 'uid' | 'gid'>>): void => {
  if (inode.fs.readOnly) fail('EROFS', 'chmod', inode.name);
  Object.assign(inode, fields);
};

/** What statfs calls each type. */
const MAGIC: Readonly<Record<string, number>> = {
  cgroup2: 0x63677270,
  tmpfs: 0x01021994,
  proc: 0x9fa0,
  sysfs: 0x62656572,
};

type StatOptions = { readonly bigint?: boolean; readonly throwIfNoEntry?: boolean };
function statAt(path: Path, syscall: 'stat' | 'lstat', o?: StatOptions): SimStats | undefined {
  try {
    return statsOf(inodeOf(path, syscall, syscall === 'stat'), o);
  } catch (err) {
    if (o?.throwIfNoEntry === false && (err as { code?: string }).code === 'ENOENT') return undefined;
    throw err;
  }
}

const statfs = (path: Path) => {
  const { fs } = inodeOf(path, 'statfs');
  const blocks = Math.floor(fs.capacityBytes / 4096);
  const free = fs.low ? 0 : Math.max(0, blocks - Math.ceil(fs.usedBytes / 4096));
  const type = MAGIC[fs.type] ?? 0xef53;
  return { type, bsize: 4096, frsize: 4096, blocks, bfree: free, bavail: free, files: 6_000_000, ffree: 5_900_000 };
};

export const calls = {
  open,
  readFile,
  writeFile,
  appendFile: (path: Path, data: string | Uint8Array) => writeFile(path, data, { flag: 'a' }),
  read,
  write,
  mkdir,
  readdir,
  rm,
  statfs,
  close: (fd: number) => tree().close(fd),
  stat: (path: Path, o?: StatOptions): SimStats | undefined => statAt(path, 'stat', o),
  lstat: (path: Path, o?: StatOptions): SimStats | undefined => statAt(path, 'lstat', o),
  fstat: (fd: number, o?: StatOptions): SimStats => statsOf(inodeOf(fd, 'fstat'), o),
  fsync: (fd: number) => tree().sync(inodeOf(fd, 'fsync')),
  fdatasync: (fd: number) => tree().sync(inodeOf(fd, 'fdatasync')),
  ftruncate: truncate,
  chmod: (path: Path, mode: number) => change(inodeOf(path, 'chmod'), { mode }),
  fchmod: (fd: number, mode: number) => change(inodeOf(fd, 'fchmod'), { mode }),
  chown: (path: Path, uid: number, gid: number) => change(inodeOf(path, 'chown'), { uid, gid }),
  fchown: (fd: number, uid: number, gid: number) => change(inodeOf(fd, 'fchown'), { uid, gid }),
  lchown: (path: Path, uid: number, gid: number) => change(inodeOf(path, 'lchown', false), { uid, gid }),
  access: (path: Path) => void inodeOf(path, 'access'),
  exists: (path: Path): boolean => {
    try {
      return inodeOf(path, 'access') !== undefined;
    } catch {
      return false; // as Node's existsSync has it
    }
  },
  realpath: (path: Path) => tree().realpath(text(path)),
  readlink: (path: Path): string => {
    const inode = inodeOf(path, 'readlink', false);
    return inode.kind === 'symlink' ? inode.target : fail('EINVAL', 'readlink', text(path));
  },
  rename: (from: Path, to: Path) => tree().rename(text(from), text(to)),
  rmdir: (path: Path) => tree().rmdir(text(path)),
  unlink: (path: Path) => tree().unlink(text(path)),
  symlink: (target: string, path: Path) => tree().symlink(target, text(path)),
  link: (from: Path, to: Path) => tree().link(text(from), text(to)),
  mkdtemp: (prefix: string): string => {
    const path = `${prefix}${machine().scheduler.latency.bytes(3).toString('hex')}`;
    mkdir(path, { mode: 0o700 });
    return path;
  },
  utimes: () => undefined,
};

export type Calls = typeof calls;
