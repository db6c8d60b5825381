// A directory held open, and operations on names in it. Paths go through /proc/self/fd/N, so the directory meant is the
// one that was opened, whatever happens to the path meanwhile; no operation follows a symlink in the last place.
// Everything is asynchronous: a slow disk delays the caller, not the process.
import { constants, type Stats } from 'node:fs';
import {
  chmod,
  chown,
  lchown,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
  type FileHandle,
} from 'node:fs/promises';
import { errnoOf, KubeletError } from '../../lib/errors.ts';

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
/** Not in Node's constants: names a file without opening it. */
const O_PATH = 0o10000000;
/** Holding a directory needs no permission to read it, which root may not have on a network filesystem. */
const HOLD = O_PATH | O_DIRECTORY | O_NOFOLLOW;

/** Deleting a large volume must leave the file system's threads to others too. */
const PARALLEL = 3;
const MAX_DEPTH = 48;

export class OpenDir {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Opens a directory by path. Only the last element may not be a symlink: the rest of the path must be trusted. */
  static async open(path: string): Promise<OpenDir> {
    return new OpenDir(await open(path, HOLD));
  }

  static async using<T>(path: string, work: (dir: OpenDir) => Promise<T>): Promise<T> {
    const dir = await OpenDir.open(path);
    try {
      return await work(dir);
    } finally {
      await dir.close();
    }
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  stat(): Promise<Stats> {
    return this.#handle.stat();
  }

  chmod(mode: number): Promise<void> {
    return chmod(this.#self, mode);
  }

  chown(uid: number, gid: number): Promise<void> {
    return chown(this.#self, uid, gid);
  }

  list(): Promise<string[]> {
    return readdir(this.#self);
  }

  async openDir(name: string): Promise<OpenDir> {
    return new OpenDir(await open(this.at(name), HOLD));
  }

  async mkdir(name: string, mode: number): Promise<OpenDir> {
    await mkdir(this.at(name), 0o700);
    const made = await this.openDir(name);
    await made.chmod(mode);
    return made;
  }

  /** The directory of this name, made if it is missing. A symlink in its place is refused. */
  async ensureDir(name: string, mode: number): Promise<OpenDir> {
    try {
      return await this.openDir(name);
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT') throw err;
    }
    try {
      return await this.mkdir(name, mode);
    } catch (err) {
      if (errnoOf(err) !== 'EEXIST') throw err;
      return this.openDir(name);
    }
  }

  /**
   * Gives a file new content in place: whoever has it mounted sees it. What is there under the name and is not a plain
   * file is replaced, never written through.
   */
  async overwriteFile(name: string, data: string, mode: number): Promise<void> {
    let file: FileHandle;
    try {
      file = await open(this.at(name), O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
    } catch (err) {
      const errno = errnoOf(err);
      // ENXIO: a pipe nobody reads; ELOOP: a symlink.
      if (errno === 'ENXIO' || errno === 'ELOOP') await this.#gone(unlink(this.at(name)));
      else if (errno !== 'ENOENT') throw err;
      return this.createFile(name, Buffer.from(data), mode);
    }
    try {
      const stat = await file.stat();
      if (stat.isFile() && stat.nlink === 1) {
        await file.truncate(0);
        await file.write(data, 0);
        return;
      }
    } finally {
      await file.close();
    }
    await this.#gone(unlink(this.at(name)));
    await this.createFile(name, Buffer.from(data), mode);
  }

  /** Creates a file that must not exist yet, with exactly this mode and, if given, this owner. */
  async createFile(name: string, data: Uint8Array, mode: number, uid?: number): Promise<void> {
    const file = await open(this.at(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      await file.writeFile(data);
      if (uid !== undefined) await file.chown(uid, (await file.stat()).gid);
      await file.chmod(mode);
    } finally {
      await file.close();
    }
  }

  /** The content of a regular file, or undefined if the name is something else, is gone or is larger than `maxBytes`. */
  async readFile(name: string, maxBytes: number): Promise<Buffer | undefined> {
    const stat = await this.lstat(name);
    if (stat?.isFile() !== true || stat.size > maxBytes) return undefined;
    const file = await open(this.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      return (await file.stat()).isFile() ? await file.readFile() : undefined;
    } finally {
      await file.close();
    }
  }

  symlink(target: string, name: string): Promise<void> {
    return symlink(target, this.at(name));
  }

  /** The target of a symlink, or undefined if the name is none. */
  async readlink(name: string): Promise<string | undefined> {
    try {
      return await readlink(this.at(name));
    } catch (err) {
      if (errnoOf(err) === 'EINVAL' || errnoOf(err) === 'ENOENT') return undefined;
      throw err;
    }
  }

  rename(from: string, to: string): Promise<void> {
    return rename(this.at(from), this.at(to));
  }

  async lstat(name: string): Promise<Stats | undefined> {
    try {
      return await lstat(this.at(name));
    } catch (err) {
      if (errnoOf(err) === 'ENOENT') return undefined;
      throw err;
    }
  }

  lchown(name: string, uid: number, gid: number): Promise<void> {
    return lchown(this.at(name), uid, gid);
  }

  /** A handle that names the entry, a symlink itself included, without opening what it leads to. */
  async pin(name: string): Promise<PinnedFile> {
    return new PinnedFile(await open(this.at(name), O_PATH | O_NOFOLLOW));
  }

  async pinSelf(): Promise<PinnedFile> {
    return new PinnedFile(await open(`${this.#self}/.`, O_PATH | O_DIRECTORY));
  }

  /** Removes a name and all beneath it. Never follows a symlink, never enters another filesystem. Gone is success. */
  async removeTree(name: string): Promise<void> {
    const device = (await this.stat()).dev;
    const pending = [name];
    let lifted = 0;
    // A tree deeper than the open descriptors allow is taken apart from the top: deep parts are moved up first.
    const lift = async (from: OpenDir, child: string): Promise<void> => {
      const to = `..removing.${process.pid}.${lifted++}`;
      await rename(from.at(child), this.at(to));
      pending.push(to);
    };
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      await this.#removeOne(next, device, 0, lift);
    }
  }

  async #removeOne(
    name: string,
    device: number,
    depth: number,
    lift: (from: OpenDir, name: string) => Promise<void>,
  ): Promise<void> {
    const stat = await this.lstat(name);
    if (stat === undefined) return;
    if (stat.dev !== device) {
      throw new KubeletError('conflict', `refusing to delete ${name}: it is another filesystem's mount point`);
    }
    if (!stat.isDirectory()) return this.#gone(unlink(this.at(name)));
    if (depth >= MAX_DEPTH) return lift(this, name);
    const dir = await this.openDir(name);
    try {
      if ((await dir.stat()).dev !== device) {
        throw new KubeletError('conflict', `refusing to delete ${name}: it is another filesystem's mount point`);
      }
      const children = await readdir(dir.#self, { withFileTypes: true });
      const files = children.filter((child) => !child.isDirectory());
      for (let i = 0; i < files.length; i += PARALLEL) {
        const chunk = files.slice(i, i + PARALLEL);
        await Promise.all(chunk.map((file) => dir.#gone(unlink(dir.at(file.name)))));
      }
      // One by one, or the open descriptors of a wide and deep tree multiply.
      for (const child of children) {
        if (child.isDirectory()) await dir.#removeOne(child.name, device, depth + 1, lift);
      }
    } finally {
      await dir.close();
    }
    await this.#gone(rmdir(this.at(name)));
  }

  async #gone(removal: Promise<void>): Promise<void> {
    try {
      await removal;
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT') throw err;
    }
  }

  get #self(): string {
    return `/proc/self/fd/${this.#handle.fd}`;
  }

  /** The path of a name in this directory, good while the directory is open. */
  at(name: string): string {
    if (name === '' || name === '.' || name === '..' || name.includes('/') || name.includes('\0')) {
      throw new KubeletError('invalid', `${JSON.stringify(name)} is not the name of a directory entry`);
    }
    return `${this.#self}/${name}`;
  }
}

/** One file, directory or symlink, held by an O_PATH descriptor. */
export class PinnedFile {
  readonly #handle: FileHandle;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  get fd(): number {
    return this.#handle.fd;
  }

  stat(): Promise<Stats> {
    return this.#handle.stat();
  }

  /** For reading what is pinned, whatever its name leads to by now. Opens nothing but regular files. */
  async read(maxBytes: number): Promise<Buffer> {
    const stat = await this.stat();
    if (!stat.isFile()) throw new KubeletError('invalid', 'not a regular file');
    if (stat.size > maxBytes) throw new KubeletError('exhausted', `larger than ${maxBytes} bytes`);
    const file = await open(`/proc/self/fd/${this.#handle.fd}`, O_RDONLY);
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(stat.size), 0, stat.size, 0);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  }

  /** Not for symlinks: through /proc the kernel would follow them. */
  chmod(mode: number): Promise<void> {
    return chmod(`/proc/self/fd/${this.#handle.fd}`, mode);
  }

  chown(uid: number, gid: number): Promise<void> {
    return chown(`/proc/self/fd/${this.#handle.fd}`, uid, gid);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}
