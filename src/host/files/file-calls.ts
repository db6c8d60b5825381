// The system's calls on files, in two ways with the same names. `onThreads` is the usual one: a slow disk delays the
// caller, not the process. `atOnce` is for a file system in memory that nobody else has seen yet: there a call takes a
// few microseconds, a thread's turn at it several times that.
import * as fs from 'node:fs';
import { promisify } from 'node:util';
import { nameOfBytes, type EntryName } from './entry-name.ts';

/** What `await` takes; `atOnce` answers with the value itself. */
export type Soon<T> = T | Promise<T>;

/** A Buffer where a name in it is not UTF-8. */
export type Path = string | Buffer;

/** What a directory says of a name. It may be something else by now. */
export type Entry = { readonly name: EntryName; readonly isDirectory: boolean };

export const entryOf = (dirent: fs.Dirent<string | Buffer>): Entry => ({
  name: nameOfBytes(Buffer.from(dirent.name as string).toString('latin1')),
  isDirectory: dirent.isDirectory(),
});

export interface FileCalls {
  open(path: Path, flags: number, mode?: number): Soon<number>;
  close(fd: number): Soon<void>;
  fstat(fd: number): Soon<fs.Stats>;
  fchmod(fd: number, mode: number): Soon<void>;
  fchown(fd: number, uid: number, gid: number): Soon<void>;
  ftruncate(fd: number, length: number): Soon<void>;
  /** The first bytes of a file, never more than asked for. */
  read(fd: number, bytes: number): Soon<Buffer>;
  writeFile(fd: number, data: Uint8Array): Soon<void>;
  chmod(path: Path, mode: number): Soon<void>;
  chown(path: Path, uid: number, gid: number): Soon<void>;
  lchown(path: Path, uid: number, gid: number): Soon<void>;
  lstat(path: Path): Soon<fs.Stats>;
  mkdir(path: Path, mode: number): Soon<void>;
  readdir(path: Path): Soon<EntryName[]>;
  readEntries(path: Path): Soon<Entry[]>;
  readlink(path: Path): Soon<string>;
  rename(from: Path, to: Path): Soon<void>;
  rmdir(path: Path): Soon<void>;
  symlink(target: string, path: Path): Soon<void>;
  unlink(path: Path): Soon<void>;
}

const makeDir = promisify<Path, number>(fs.mkdir);
const listDir = promisify(fs.readdir);
const BYTES = { encoding: 'latin1' } as const;
/** With another encoding Node looks at names by wrong bytes where the file system does not say what they are. */
const WITH_TYPES = { encoding: 'buffer', withFileTypes: true } as const;
const readInto = promisify(fs.read);

export const onThreads: FileCalls = {
  open: promisify<Path, number, number | undefined, number>(fs.open),
  close: promisify(fs.close),
  fstat: promisify<number, fs.Stats>(fs.fstat),
  fchmod: promisify(fs.fchmod),
  fchown: promisify(fs.fchown),
  ftruncate: promisify(fs.ftruncate),
  read: async (fd, bytes) => {
    const { buffer, bytesRead } = await readInto(fd, Buffer.alloc(bytes), 0, bytes, 0);
    return buffer.subarray(0, bytesRead);
  },
  writeFile: promisify<number, Uint8Array>(fs.writeFile),
  chmod: promisify(fs.chmod),
  chown: promisify(fs.chown),
  lchown: promisify(fs.lchown),
  lstat: promisify<Path, fs.Stats>(fs.lstat),
  mkdir: makeDir,
  readdir: async (path) => (await listDir(path, BYTES)).map(nameOfBytes),
  readEntries: async (path) => (await listDir(path, WITH_TYPES)).map(entryOf),
  readlink: promisify<Path, string>(fs.readlink),
  rename: promisify(fs.rename),
  rmdir: promisify<Path>(fs.rmdir),
  symlink: promisify<string, Path>(fs.symlink),
  unlink: promisify(fs.unlink),
};

export const atOnce: FileCalls = {
  open: fs.openSync,
  close: fs.closeSync,
  fstat: (fd) => fs.fstatSync(fd),
  fchmod: fs.fchmodSync,
  fchown: fs.fchownSync,
  ftruncate: fs.ftruncateSync,
  read: (fd, bytes) => {
    const buffer = Buffer.alloc(bytes);
    return buffer.subarray(0, fs.readSync(fd, buffer, 0, bytes, 0));
  },
  writeFile: (fd, data) => fs.writeFileSync(fd, data),
  chmod: fs.chmodSync,
  chown: fs.chownSync,
  lchown: fs.lchownSync,
  lstat: (path) => fs.lstatSync(path),
  mkdir: (path, mode) => {
    fs.mkdirSync(path, mode);
  },
  readdir: (path) => fs.readdirSync(path, BYTES).map(nameOfBytes),
  readEntries: (path) => fs.readdirSync(path, WITH_TYPES).map(entryOf),
  readlink: (path) => fs.readlinkSync(path),
  rename: fs.renameSync,
  rmdir: (path) => fs.rmdirSync(path),
  symlink: (target, path) => fs.symlinkSync(target, path),
  unlink: fs.unlinkSync,
};
