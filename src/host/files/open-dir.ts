// A directory held open, and operations on names in it. Paths go through /proc/self/fd/N, so the directory meant is the
// one that was opened, whatever happens to the path meanwhile; no operation follows a symlink in the last place.
// Calls go to the file system's threads unless whoever opens the directory knows better: a slow disk delays the caller,
// not the process.
import { closeSync, constants, type Stats } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import { atPath, namingPath } from '../../lib/file-error.ts';
import { entryName, showName, type EntryName } from './entry-name.ts';
import { entryOf, onThreads, type Entry, type FileCalls, type Path, type Soon } from './file-calls.ts';
import { survivesUmask } from './modes.ts';

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
/** Not in Node's constants: names a file without opening it. */
export const O_PATH = 0o10000000;
/** Holding a directory needs no permission to read it, which root may not have on a network filesystem. */
const HOLD = O_PATH | O_DIRECTORY | O_NOFOLLOW;

/** Nothing that is there is opened. */
export const NEW = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK;

const READ_AT_ONCE = 1024;
/** Of a file that is overwritten. */
const MAX_KEPT = 1024 * 1024;
/** A directory of this size holds some thousand names: they are read at once, which is quicker. */
const SMALL_DIR_BYTES = 256 * 1024;

/** Where a directory was when it was opened. Paths are made of it for errors only: a walk opens many, some very deep. */
type Place = { readonly above: Place | undefined; readonly name: EntryName };
/** Of names in a message. */
const MAX_SHOWN = 32;

function showPlace(place: Place): string {
  const names: string[] = [];
  let at: Place | undefined = place;
  for (; at !== undefined && (names.length < MAX_SHOWN || at.above === undefined); at = at.above)
    names.unshift(showName(at.name));
  if (at === undefined) return names.join('/');
  for (; at.above !== undefined; at = at.above);
  return [showName(at.name), '…', ...names].join('/');
}

export class OpenDir {
  readonly #calls: FileCalls;
  readonly #fd: number;
  readonly #place: Place;

  private constructor(calls: FileCalls, fd: number, place: Place) {
    this.#calls = calls;
    this.#fd = fd;
    this.#place = place;
  }

  /** Opens a directory by path. Only the last element may not be a symlink: the rest of the path must be trusted. */
  static async open(path: string, calls: FileCalls = onThreads): Promise<OpenDir> {
    return new OpenDir(calls, await calls.open(path, HOLD), { above: undefined, name: path });
  }

  /** The same where an administrator may have put a link. */
  static async follow(path: string): Promise<OpenDir> {
    return new OpenDir(onThreads, await onThreads.open(path, O_PATH | O_DIRECTORY), { above: undefined, name: path });
  }

  static async using<T>(path: string, work: (dir: OpenDir) => Promise<T>, calls?: FileCalls): Promise<T> {
    const dir = await OpenDir.open(path, calls);
    try {
      return await work(dir);
    } finally {
      await dir.close();
    }
  }

  close(): Soon<void> {
    return this.#calls.close(this.#fd);
  }

  /** Without a thread. Only while another descriptor holds the same filesystem: the last one may have to wait for it. */
  closeNow(): void {
    closeSync(this.#fd);
  }

  /** For people: where it was when it was opened. */
  get path(): string {
    return showPlace(this.#place);
  }

  stat(): Promise<Stats> {
    return this.#do(undefined, () => this.#calls.fstat(this.#fd));
  }

  chmod(mode: number): Promise<void> {
    return this.#do(undefined, () => this.#calls.chmod(this.#self, mode));
  }

  chown(uid: number, gid: number): Promise<void> {
    return this.#do(undefined, () => this.#calls.chown(this.#self, uid, gid));
  }

  list(): Promise<EntryName[]> {
    return this.#do(undefined, () => this.#calls.readdir(this.#self));
  }

  /**
   * The names, all of a directory of usual size at once, those of a large one in parts: a directory of millions is never
   * held in memory as a whole. `stat` is the directory's own.
   */
  async *batches(stat: Stats): AsyncGenerator<readonly EntryName[], void, undefined> {
    if (!isLarge(stat)) yield await this.list();
    else for await (const entries of this.#parts()) yield entries.map(({ name }) => name);
  }

  /** The same with what they are. */
  async *entries(stat: Stats): AsyncGenerator<readonly Entry[], void, undefined> {
    if (!isLarge(stat)) yield await this.#do(undefined, () => this.#calls.readEntries(this.#self));
    else yield* this.#parts();
  }

  async *#parts(): AsyncGenerator<readonly Entry[], void, undefined> {
    let batch: Entry[] = [];
    const options = { bufferSize: READ_AT_ONCE, encoding: 'buffer' as BufferEncoding };
    for await (const entry of await opendir(this.#self, options)) {
      if (batch.push(entryOf(entry)) < READ_AT_ONCE) continue;
      yield batch;
      batch = [];
    }
    if (batch.length > 0) yield batch;
  }

  /** Names that are wanted, at most `max`; only such as are UTF-8. */
  async names(wanted: (name: string) => boolean, max: number): Promise<string[]> {
    const found: string[] = [];
    for await (const batch of this.batches(await this.stat()))
      for (const name of batch) if (typeof name === 'string' && wanted(name) && found.push(name) >= max) return found;
    return found;
  }

  async openDir(name: EntryName): Promise<OpenDir> {
    const fd = await this.#do(name, () => this.#calls.open(this.at(name), HOLD));
    return new OpenDir(this.#calls, fd, { above: this.#place, name });
  }

  /** A directory that was pinned by this name, whatever the name leads to by now. */
  async openPinned(pinned: PinnedFile, name: EntryName): Promise<OpenDir> {
    const fd = await this.#do(name, () => this.#calls.open(`/proc/self/fd/${pinned.fd}/.`, HOLD));
    return new OpenDir(this.#calls, fd, { above: this.#place, name });
  }

  /** Makes a directory that must not be there yet, and says whether it has exactly this mode. */
  async make(name: string, mode: number): Promise<boolean> {
    const whole = survivesUmask(mode);
    await this.#do(name, () => this.#calls.mkdir(this.at(name), whole ? mode : 0o700));
    return whole;
  }

  async mkdir(name: string, mode: number): Promise<OpenDir> {
    const whole = await this.make(name, mode);
    const made = await this.openDir(name);
    if (!whole) await made.chmod(mode);
    return made;
  }

  /** The directory of this name, made if it is missing. A symlink in its place is refused. */
  async ensureDir(name: string, mode: number): Promise<OpenDir> {
    try {
      return await this.mkdir(name, mode);
    } catch (err) {
      if (errnoOf(err) !== 'EEXIST') throw err;
      return this.openDir(name);
    }
  }

  /**
   * Gives a file new content in place: whoever has it mounted sees it. What is there under the name and is not a plain
   * file is replaced, never opened.
   */
  async overwriteFile(name: string, data: string, mode: number): Promise<void> {
    const text = Buffer.from(data);
    const pinned = await this.pin(name).catch(unlessMissing);
    if (pinned !== undefined)
      try {
        const stat = await pinned.stat();
        if (stat.isFile() && stat.nlink === 1) return await pinned.overwrite(text);
        await this.#unlink(name);
      } finally {
        await pinned.close();
      }
    await this.createFile(name, text, mode);
  }

  /** Creates a file that must not exist yet, with exactly this mode and, if given, this owner. */
  async createFile(name: string, data: Uint8Array, mode: number, uid?: number): Promise<void> {
    await this.#do(name, () => this.#create(name, data, mode, uid));
  }

  async #create(name: string, data: Uint8Array, mode: number, uid: number | undefined): Promise<void> {
    const calls = this.#calls;
    const whole = uid === undefined && survivesUmask(mode);
    const fd = await calls.open(this.at(name), NEW, whole ? mode : 0o600);
    try {
      if (data.length > 0) await calls.writeFile(fd, data);
      if (uid !== undefined) await calls.fchown(fd, uid, (await calls.fstat(fd)).gid);
      if (!whole) await calls.fchmod(fd, mode);
    } finally {
      await calls.close(fd);
    }
  }

  /** The content of a regular file, or undefined if the name is something else, is gone or is larger than `maxBytes`. */
  async readFile(name: EntryName, maxBytes: number): Promise<Buffer | undefined> {
    const stat = await this.lstat(name);
    if (stat?.isFile() !== true || stat.size > maxBytes) return undefined;
    return this.#do(name, () => this.#read(name, maxBytes));
  }

  async #read(name: EntryName, maxBytes: number): Promise<Buffer | undefined> {
    const fd = await this.#calls.open(this.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const opened = await this.#calls.fstat(fd);
      return opened.isFile() && opened.size <= maxBytes ? await this.#calls.read(fd, opened.size) : undefined;
    } finally {
      await this.#calls.close(fd);
    }
  }

  symlink(target: string, name: string): Promise<void> {
    return this.#do(name, () => this.#calls.symlink(target, this.at(name)));
  }

  /** The target of a symlink, or undefined if the name is none. */
  async readlink(name: EntryName): Promise<string | undefined> {
    try {
      return await this.#calls.readlink(this.at(name));
    } catch (err) {
      if (errnoOf(err) === 'EINVAL' || errnoOf(err) === 'ENOENT') return undefined;
      throw atPath(err, this.#pathOf(name));
    }
  }

  rename(from: string, to: string): Promise<void> {
    return this.#do(to, () => this.#calls.rename(this.at(from), this.at(to)));
  }

  async lstat(name: EntryName): Promise<Stats | undefined> {
    try {
      return await this.#calls.lstat(this.at(name));
    } catch (err) {
      if (errnoOf(err) === 'ENOENT') return undefined;
      throw atPath(err, this.#pathOf(name));
    }
  }

  lchown(name: EntryName, uid: number, gid: number): Promise<void> {
    return this.#do(name, () => this.#calls.lchown(this.at(name), uid, gid));
  }

  /** A handle that names the entry, a symlink itself included, without opening what it leads to. */
  async pin(name: EntryName): Promise<PinnedFile> {
    const fd = await this.#do(name, () => this.#calls.open(this.at(name), O_PATH | O_NOFOLLOW));
    return new PinnedFile(this.#calls, fd, () => this.#pathOf(name));
  }

  async pinSelf(): Promise<PinnedFile> {
    const fd = await this.#do(undefined, () => this.#calls.open(`${this.#self}/.`, O_PATH | O_DIRECTORY));
    return new PinnedFile(this.#calls, fd, () => this.path);
  }

  /** The directory that this one is in, if it is still the one that `stat` is of. */
  async openParentAs(stat: Stats): Promise<OpenDir> {
    const fd = await this.#do('..', () => this.#calls.open(`${this.#self}/..`, HOLD));
    const parent = new OpenDir(this.#calls, fd, this.#place.above ?? this.#place);
    const { dev, ino } = await parent.stat();
    if (dev === stat.dev && ino === stat.ino) return parent;
    parent.closeNow();
    throw new KubeletError('conflict', `${parent.path} was moved while it was walked`);
  }

  /** Removes a directory that is empty. Most are, or are gone: asking first would cost a call more. */
  async removeDir(name: EntryName): Promise<'removed' | 'gone' | 'full' | 'file'> {
    try {
      await this.#calls.rmdir(this.at(name));
      return 'removed';
    } catch (err) {
      const errno = errnoOf(err);
      if (errno === 'ENOENT') return 'gone';
      if (errno === 'ENOTEMPTY' || errno === 'EEXIST') return 'full';
      if (errno === 'ENOTDIR') return 'file';
      throw errno === 'EBUSY' ? this.mountPoint(name, err) : atPath(err, this.#pathOf(name));
    }
  }

  /** Removes what is no directory. */
  async removeFile(name: EntryName): Promise<'removed' | 'gone' | 'directory'> {
    try {
      await this.#calls.unlink(this.at(name));
      return 'removed';
    } catch (err) {
      const errno = errnoOf(err);
      if (errno === 'ENOENT') return 'gone';
      if (errno === 'EISDIR') return 'directory';
      throw errno === 'EBUSY' ? this.mountPoint(name, err) : atPath(err, this.#pathOf(name));
    }
  }

  /** Moves a name from another directory of the same file system here. */
  takeFrom(other: OpenDir, name: EntryName, to: EntryName): Promise<void> {
    return this.#do(to, () => this.#calls.rename(other.at(name), this.at(to)));
  }

  /** Gone is success. */
  unlink(name: EntryName): Promise<void> {
    return this.#unlink(name);
  }

  #unlink(name: EntryName): Promise<void> {
    return this.#do(name, () => unlessGone(() => this.#calls.unlink(this.at(name))));
  }

  mountPoint(name: EntryName, cause?: unknown): KubeletError {
    return new KubeletError('conflict', `refusing to delete ${this.#pathOf(name)}: it is a mount point`, { cause });
  }

  #do<T>(name: EntryName | undefined, call: () => Soon<T>): Promise<T> {
    return namingPath(() => this.#pathOf(name), call);
  }

  #pathOf(name: EntryName | undefined): string {
    return name === undefined ? this.path : `${this.path}/${showName(name)}`;
  }

  get #self(): string {
    return `/proc/self/fd/${this.#fd}`;
  }

  /** The path of a name in this directory, good while the directory is open. */
  at(name: string): string;
  at(name: EntryName): Path;
  at(name: EntryName): Path {
    const own = entryName(name);
    return typeof own === 'string' ? `${this.#self}/${own}` : Buffer.concat([Buffer.from(`${this.#self}/`), own]);
  }
}

/** Some file systems do not say how large a directory is. */
export const isLarge = ({ size }: Stats): boolean => size > SMALL_DIR_BYTES || size === 0;

async function unlessGone(removal: () => Soon<void>): Promise<void> {
  try {
    await removal();
  } catch (err) {
    if (errnoOf(err) !== 'ENOENT') throw err;
  }
}

function unlessMissing(err: unknown): undefined {
  if (errnoOf(err) !== 'ENOENT') throw err;
}

/** One file, directory or symlink, held by an O_PATH descriptor. */
export class PinnedFile {
  readonly #calls: FileCalls;
  readonly fd: number;
  /** For people: where it was when it was pinned. */
  readonly #path: () => string;

  constructor(calls: FileCalls, fd: number, path: () => string) {
    this.#calls = calls;
    this.fd = fd;
    this.#path = path;
  }

  stat(): Promise<Stats> {
    return namingPath(this.#path, () => this.#calls.fstat(this.fd));
  }

  /** For reading what is pinned, whatever its name leads to by now. Opens nothing but regular files. */
  read(maxBytes: number): Promise<Buffer> {
    return namingPath(this.#path, () => this.#read(maxBytes));
  }

  async #read(maxBytes: number): Promise<Buffer> {
    const stat = await this.stat();
    if (!stat.isFile()) throw new KubeletError('invalid', 'not a regular file');
    if (stat.size > maxBytes) throw new KubeletError('exhausted', `larger than ${maxBytes} bytes`);
    const fd = await this.#calls.open(`/proc/self/fd/${this.fd}`, O_RDONLY);
    try {
      return await this.#calls.read(fd, stat.size);
    } finally {
      await this.#calls.close(fd);
    }
  }

  /**
   * Gives a regular file new content, unless it has it. The file is never empty in between; when it cannot be
   * written it gets its old content back.
   */
  async overwrite(data: Buffer): Promise<void> {
    // One that is too large, or cannot be read, is overwritten all the same.
    const old = await this.read(MAX_KEPT).catch(() => undefined);
    if (old?.equals(data) === true) return;
    try {
      await namingPath(this.#path, () => this.#write(data));
    } catch (err) {
      // The file's own blocks are there. What fails twice is told as it failed first.
      if (old !== undefined) await this.#write(old).catch(() => undefined);
      throw err;
    }
  }

  async #write(data: Buffer): Promise<void> {
    const fd = await this.#calls.open(`/proc/self/fd/${this.fd}`, O_WRONLY | O_NONBLOCK);
    try {
      await this.#calls.writeFile(fd, data);
      await this.#calls.ftruncate(fd, data.length);
    } finally {
      await this.#calls.close(fd);
    }
  }

  /** Without a thread, as `OpenDir.closeNow`. */
  closeNow(): void {
    closeSync(this.fd);
  }

  /** Not for symlinks: through /proc the kernel would follow them. */
  chmod(mode: number): Promise<void> {
    return namingPath(this.#path, () => this.#calls.chmod(`/proc/self/fd/${this.fd}`, mode));
  }

  chown(uid: number, gid: number): Promise<void> {
    return namingPath(this.#path, () => this.#calls.chown(`/proc/self/fd/${this.fd}`, uid, gid));
  }

  close(): Soon<void> {
    return this.#calls.close(this.fd);
  }
}
