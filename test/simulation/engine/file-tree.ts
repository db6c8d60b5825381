// The machine's files: one tree of mounted file systems with the rules of the kernel that the agent relies on (links,
// descriptors by /proc/self/fd, mounts, busy mount points, synced and unsynced data). All calls act at once; the modules in
// `platform/` add the time they take.
import { EventEmitter } from 'node:events';
import { fail, Inode, type FileSystem, type Kind } from './inode.ts';

export type Mount = {
  readonly id: number;
  readonly fs: FileSystem;
  readonly root: Inode;
  readonly covered: Inode | undefined;
  readonly target: string;
  readonly options: string;
};

export type Descriptor = {
  readonly fd: number;
  readonly inode: Inode;
  readonly path: string;
  readonly append: boolean;
  position: number;
};

export type Found = {
  readonly inode: Inode | undefined;
  readonly parent: Inode;
  readonly name: string;
  readonly path: string;
};

/** A path that was found. What its last name stands for is looked up again when that directory has changed. */
type Known = {
  found: Found;
  inParent: number;
  /** Of changes of symbolic links, where one was followed. */
  readonly links: number | undefined;
};

/** A journal commits names after this long, and data is written back after that. */
const NAMES_MS = 5000;
const DATA_MS = 30_000;
const MAX_LINKS = 40;
/** Paths of what is long gone are forgotten. */
const MOST_KNOWN = 20_000;
const BY_DESCRIPTOR = '/proc/self/fd/';
const FIRST_FD = 20;

export class FileTree {
  readonly #now: () => number;
  /** What is on disk depends on how much time passed, whatever a clock says. */
  readonly #uptime: () => number;
  readonly #mounts: Mount[] = [];
  readonly #over = new Map<Inode, Mount[]>();
  readonly #descriptors = new Map<number, Descriptor>();
  readonly #dirty = new Set<Inode>();
  readonly #watchers = new Map<Inode, Set<EventEmitter>>();
  /** Where paths lead: the same ones are asked for all the time. */
  readonly #known = new Map<string, Known>();
  /** The walk that was made last led through a symbolic link. */
  #followed = false;
  #linkChanges = 0;
  readonly root: Inode;
  readonly heldByKernel = new Set<string>();
  /** Of names and mounts, so far. */
  changes = 0;
  #lastIno = 1;
  #lastDevice = 30;
  #lastMount = 20;
  #lastFd = FIRST_FD;

  constructor(now: () => number, uptime: () => number) {
    this.#now = now;
    this.#uptime = uptime;
    const fs = this.makeFs('ext4', '/dev/vda1', { durable: true, capacityBytes: 100 * 2 ** 30 });
    this.root = fs.root;
    this.#add({ fs, root: fs.root, covered: undefined, target: '/', options: 'rw,relatime' });
  }

  get mounts(): readonly Mount[] {
    return this.#mounts;
  }

  get openDescriptors(): readonly Descriptor[] {
    return [...this.#descriptors.values()];
  }

  makeFs(type: string, source: string, more: { durable?: boolean; capacityBytes?: number } = {}): FileSystem {
    const device = ++this.#lastDevice;
    const fs = {
      device,
      type,
      source,
      durable: more.durable ?? false,
      capacityBytes: more.capacityBytes ?? 2 ** 30,
      usedBytes: 0,
      readOnly: false,
      full: false,
      low: false,
    } as Omit<FileSystem, 'root'> & { root?: Inode };
    fs.root = new Inode(fs as FileSystem, 'dir', 0o755, ++this.#lastIno, this.#now());
    return fs as FileSystem;
  }

  // --- mounts

  mountFs(fs: FileSystem, target: string, options = 'rw'): void {
    const { inode, path } = this.#must(target, 'mount');
    this.#add({ fs, root: fs.root, covered: inode, target: path, options });
  }

  bind(source: string, target: string): void {
    const from = this.#must(source, 'mount');
    const { inode, path } = this.#must(target, 'mount');
    this.#add({ fs: from.inode.fs, root: from.inode, covered: inode, target: path, options: 'rw' });
  }

  unmount(target: string): void {
    const { inode, path } = this.#must(target, 'umount');
    const index = this.#mounts.findLastIndex((m) => m.root === inode && m.target === path);
    const mount = this.#mounts[index];
    if (mount?.covered === undefined) return fail('EINVAL', 'umount', target);
    const isOpen = [...this.#descriptors.values()].some((d) => d.path === path || d.path.startsWith(`${path}/`));
    if (isOpen || this.heldByKernel.has(path) || this.#mounts.some((m) => m.target.startsWith(`${path}/`)))
      return fail('EBUSY', 'umount', target);
    this.#mounts.splice(index, 1);
    this.#changed();
    const stack = this.#over.get(mount.covered) ?? [];
    stack.splice(stack.lastIndexOf(mount), 1);
    if (stack.length === 0) this.#over.delete(mount.covered);
  }

  #add(mount: Omit<Mount, 'id'>): void {
    const made = { id: ++this.#lastMount, ...mount };
    this.#changed();
    this.#mounts.push(made);
    if (mount.covered === undefined) return;
    const stack = this.#over.get(mount.covered);
    if (stack === undefined) this.#over.set(mount.covered, [made]);
    else stack.push(made);
  }

  mountInfo(): string {
    return this.#mounts
      .map((m) => {
        const target = m.target.replaceAll(' ', '\\040');
        const root = m.root === m.fs.root ? '/' : (this.pathOf(m.root) ?? '/');
        return `${m.id} 20 0:${m.fs.device} ${root} ${target} ${m.options} shared:${m.id} - ${m.fs.type} ${m.fs.source} rw\n`;
      })
      .join('');
  }

  pathOf(inode: Inode): string | undefined {
    const names: string[] = [];
    for (let at = inode; at.parent !== undefined; at = at.parent) names.unshift(at.name);
    return `/${names.join('/')}`;
  }

  /** What is seen at a directory: the file system mounted there last. */
  #top(inode: Inode): Inode {
    let at = inode;
    for (let i = 0; i < MAX_LINKS; i++) {
      const over = this.#over.get(at);
      const last = over?.at(-1);
      if (last === undefined || last.root === at) return at;
      at = last.root;
    }
    return at;
  }

  isMountPoint(inode: Inode): boolean {
    return this.#over.has(inode);
  }

  // --- paths

  find(path: string, syscall: string, follow = true): Found {
    if (path.startsWith(BY_DESCRIPTOR)) return this.#below(path, syscall, follow) ?? this.#walk(path, syscall, follow);
    const key = follow ? path : `${path}\0`;
    const known = this.#known.get(key);
    if (known !== undefined && this.#isRight(known, follow)) return known.found;
    this.#followed = false;
    const found = this.#walk(path, syscall, follow);
    if (this.#known.size > MOST_KNOWN) this.#known.clear();
    const links = this.#followed ? this.#linkChanges : undefined;
    this.#known.set(key, { found, inParent: found.parent.nameChanges, links });
    return found;
  }

  /** A directory on the way that was removed was empty then: the last one is gone, too. */
  #isRight(known: Known, follow: boolean): boolean {
    const { parent, name, inode } = known.found;
    if (parent.isGone || (known.links !== undefined && known.links !== this.#linkChanges)) return false;
    if (known.inParent === parent.nameChanges || name === '.') return true;
    const child = parent.entries.get(name);
    if (child?.kind === 'symlink' && follow) return false;
    const now = child === undefined ? undefined : this.#top(child);
    if (now !== inode) known.found = { ...known.found, inode: now };
    known.inParent = parent.nameChanges;
    return true;
  }

  /** One plain name in a directory that is held open, which is nearly all that is asked for by descriptor. */
  #below(path: string, syscall: string, follow: boolean): Found | undefined {
    const end = path.indexOf('/', BY_DESCRIPTOR.length);
    if (end < 0 || end === path.length - 1 || path.indexOf('/', end + 1) >= 0) return undefined;
    const name = path.slice(end + 1);
    if (name === '.' || name === '..') return undefined;
    const held = this.descriptor(Number(path.slice(BY_DESCRIPTOR.length, end)), syscall);
    const parent = this.#top(held.inode);
    const child = parent.entries.get(name);
    if (parent.kind !== 'dir' || (follow && child?.kind === 'symlink')) return undefined;
    const inode = child === undefined ? undefined : this.#top(child);
    return { inode, parent, name, path: held.path === '/' ? `/${name}` : `${held.path}/${name}` };
  }

  /** Mounts are others now, or a name that paths lead through: paths have to be followed again. */
  #changed(): void {
    this.changes++;
    this.#known.clear();
  }

  /** A name in this directory stands for something else now. */
  #renamed(dir: Inode, was: Inode | undefined): void {
    dir.nameChanges++;
    if (was?.kind === 'symlink') this.#linkChanges++;
  }

  #walk(path: string, syscall: string, follow: boolean, links = 0): Found {
    if (links > MAX_LINKS) fail('ELOOP', syscall, path);
    const parts = path.split('/').filter((p) => p !== '' && p !== '.');
    let at = this.#top(this.root);
    const above: { inode: Inode; path: string }[] = [];
    let here = '';
    let start = 0;
    if (parts[0] === 'proc' && parts[1] === 'self' && parts[2] === 'fd' && parts[3] !== undefined) {
      const held = this.descriptor(Number(parts[3]), syscall);
      if (parts.length === 4) return { inode: held.inode, parent: held.inode, name: '.', path: held.path };
      at = this.#top(held.inode);
      here = held.path === '/' ? '' : held.path;
      start = 4;
    }
    if (parts.length === start) return { inode: at, parent: at, name: '.', path: here === '' ? '/' : here };
    for (let i = start; i < parts.length; i++) {
      const name = parts[i] as string;
      if (at.kind !== 'dir') fail('ENOTDIR', syscall, path);
      if (name === '..') {
        const up = above.pop();
        at = up?.inode ?? at;
        here = up?.path ?? here;
        if (i === parts.length - 1) return { inode: at, parent: at, name: '.', path: here === '' ? '/' : here };
        continue;
      }
      const child = at.entries.get(name);
      const isLast = i === parts.length - 1;
      if (child?.kind === 'symlink' && (!isLast || follow || path.endsWith('/'))) {
        this.#followed = true;
        const base = child.target.startsWith('/') ? child.target : `${here}/${child.target}`;
        return this.#walk([base, ...parts.slice(i + 1)].join('/'), syscall, follow, links + 1);
      }
      const path2 = `${here}/${name}`;
      if (isLast) {
        const inode = child === undefined ? undefined : this.#top(child);
        return { inode, parent: at, name, path: path2 };
      }
      if (child === undefined) fail('ENOENT', syscall, path);
      above.push({ inode: at, path: here });
      at = this.#top(child as Inode);
      here = path2;
    }
    return fail('ENOENT', syscall, path);
  }

  #must(path: string, syscall: string, follow = true): Found & { readonly inode: Inode } {
    const found = this.find(path, syscall, follow);
    if (found.inode === undefined) fail('ENOENT', syscall, path);
    return found as Found & { readonly inode: Inode };
  }

  get(path: string, syscall: string, follow = true): Inode {
    return this.#must(path, syscall, follow).inode;
  }

  realpath(path: string): string {
    return this.#must(path, 'realpath').path;
  }

  // --- descriptors

  descriptor(fd: number, syscall: string): Descriptor {
    return this.#descriptors.get(fd) ?? fail('EBADF', syscall);
  }

  /** Whether an open file is one of the kernel's own. */
  isKernels(fd: number): boolean {
    const type = this.#descriptors.get(fd)?.inode.fs.type;
    return type === 'cgroup2' || type === 'proc' || type === 'sysfs';
  }

  hold(inode: Inode, path: string, append = false): number {
    const fd = ++this.#lastFd;
    this.#descriptors.set(fd, { fd, inode, path, append, position: 0 });
    return fd;
  }

  close(fd: number): void {
    if (!this.#descriptors.delete(fd)) fail('EBADF', 'close');
  }

  /** A process ended: what it held is let go of. */
  closeAll(): void {
    this.#descriptors.clear();
    this.#watchers.clear();
  }

  // --- names

  create(parent: Inode, name: string, kind: Kind, mode: number, syscall: string): Inode {
    // A socket takes no block.
    if (kind !== 'socket' || parent.fs.readOnly) this.#writable(parent, syscall, name);
    const made = new Inode(parent.fs, kind, mode, ++this.#lastIno, this.#now());
    // New, it has nothing on disk.
    if (made.fs.durable) this.#touch(made);
    this.enter(parent, name, made);
    return made;
  }

  /** Puts an inode under a name. */
  enter(parent: Inode, name: string, inode: Inode): void {
    this.#touch(parent);
    this.#renamed(parent, parent.entries.get(name));
    parent.entries.set(name, inode);
    inode.name = name;
    inode.parent = parent;
    this.#tell(parent, 'rename', name);
  }

  leave(parent: Inode, name: string): void {
    this.#touch(parent);
    const inode = parent.entries.get(name);
    this.#renamed(parent, inode);
    parent.entries.delete(name);
    if (inode !== undefined && inode.parent === parent) inode.nlink--;
    this.#tell(parent, 'rename', name);
  }

  mkdir(path: string, mode: number): void {
    const { inode, parent, name } = this.find(path, 'mkdir', false);
    if (inode !== undefined) fail('EEXIST', 'mkdir', path);
    const dir = this.create(parent, name, 'dir', mode, 'mkdir');
    dir.fs.onMkdir?.(dir);
  }

  rmdir(path: string): void {
    const found = this.find(path, 'rmdir', false);
    const plain = found.parent.entries.get(found.name);
    if (plain === undefined) fail('ENOENT', 'rmdir', path);
    const dir = plain as Inode;
    if (dir.kind !== 'dir') fail('ENOTDIR', 'rmdir', path);
    if (this.isMountPoint(dir)) fail('EBUSY', 'rmdir', path);
    const isKernels = dir.fs.onMkdir !== undefined;
    if ([...dir.entries.values()].some((e) => !isKernels || e.kind === 'dir'))
      fail(isKernels ? 'EBUSY' : 'ENOTEMPTY', 'rmdir', path);
    if (isKernels && (dir.entries.get('cgroup.procs')?.data.length ?? 0) > 0) fail('EBUSY', 'rmdir', path);
    this.#writable(dir, 'rmdir', path);
    dir.isGone = true;
    this.leave(found.parent, found.name);
  }

  unlink(path: string): void {
    const found = this.find(path, 'unlink', false);
    const plain = found.parent.entries.get(found.name);
    if (plain === undefined) return fail('ENOENT', 'unlink', path);
    if (plain.kind === 'dir') fail('EISDIR', 'unlink', path);
    if (this.isMountPoint(plain)) fail('EBUSY', 'unlink', path);
    this.#writable(plain, 'unlink', path);
    plain.fs.usedBytes -= plain.data.length;
    this.leave(found.parent, found.name);
  }

  rename(from: string, to: string): void {
    const a = this.find(from, 'rename', false);
    const b = this.find(to, 'rename', false);
    const moved = a.parent.entries.get(a.name);
    const target = b.parent.entries.get(b.name);
    if (moved === undefined) return fail('ENOENT', 'rename', from);
    if (a.parent.fs !== b.parent.fs) fail('EXDEV', 'rename', from);
    this.#writable(moved, 'rename', from);
    if (target !== undefined && target !== moved) {
      if (target.kind === 'dir' && target.entries.size > 0) fail('ENOTEMPTY', 'rename', to);
      if (this.isMountPoint(target)) fail('EBUSY', 'rename', to);
      target.fs.usedBytes -= target.data.length;
      this.leave(b.parent, b.name);
    }
    this.#touch(a.parent);
    if (moved.kind === 'dir') this.#known.clear();
    this.#renamed(a.parent, moved);
    a.parent.entries.delete(a.name);
    this.#tell(a.parent, 'rename', a.name);
    this.enter(b.parent, b.name, moved);
  }

  symlink(target: string, path: string): void {
    const { inode, parent, name } = this.find(path, 'symlink', false);
    if (inode !== undefined) fail('EEXIST', 'symlink', path);
    this.create(parent, name, 'symlink', 0o777, 'symlink').target = target;
  }

  link(from: string, to: string): void {
    const inode = this.get(from, 'link', false);
    const { inode: there, parent, name } = this.find(to, 'link', false);
    if (there !== undefined) fail('EEXIST', 'link', to);
    this.#touch(parent);
    this.#renamed(parent, undefined);
    parent.entries.set(name, inode);
    inode.nlink++;
  }

  // --- content

  write(inode: Inode, data: Buffer, syscall: string): void {
    if (inode.kind === 'dir') fail('EISDIR', syscall);
    this.#writable(inode, syscall, inode.name);
    const grown = data.length - inode.data.length;
    if (grown > 0 && inode.fs.usedBytes + grown > inode.fs.capacityBytes) fail('ENOSPC', syscall, inode.name);
    this.#touch(inode);
    inode.fs.usedBytes += grown;
    inode.data = data;
    inode.mtimeMs = this.#now();
    inode.fs.onWrite?.(inode, data);
    if (inode.parent !== undefined) this.#tell(inode.parent, 'change', inode.name);
    this.#tell(inode, 'change', inode.name);
  }

  #writable(inode: Inode, syscall: string, path: string): void {
    if (inode.fs.readOnly) fail('EROFS', syscall, path);
    if (inode.fs.full && (syscall === 'mkdir' || syscall === 'open' || syscall === 'write' || syscall === 'symlink'))
      fail('ENOSPC', syscall, path);
  }

  sync(inode: Inode): void {
    inode.saved = undefined;
    this.#dirty.delete(inode);
  }

  /** Remembers what is on disk before the first change that is not. */
  #touch(inode: Inode): void {
    if (inode.kind === 'dir') this.changes++;
    if (!inode.fs.durable) return;
    const now = this.#uptime();
    const limit = inode.kind === 'dir' ? NAMES_MS : DATA_MS;
    if (inode.saved !== undefined && now - inode.dirtySinceMs < limit) return;
    inode.saved = { data: inode.data, entries: inode.kind === 'dir' ? new Map(inode.entries) : inode.entries };
    inode.dirtySinceMs = now;
    this.#dirty.add(inode);
  }

  syncAll(): void {
    for (const inode of this.#dirty) inode.saved = undefined;
    this.#dirty.clear();
  }

  /** The machine lost its power: file systems in memory, mounts and what was not on disk yet are gone. */
  powerCut(): void {
    const now = this.#uptime();
    for (const inode of this.#dirty) {
      const { saved } = inode;
      inode.saved = undefined;
      if (saved === undefined || now - inode.dirtySinceMs >= (inode.kind === 'dir' ? NAMES_MS : DATA_MS)) continue;
      inode.data = saved.data;
      if (inode.kind !== 'dir') continue;
      const entries = new Map(saved.entries);
      inode.entries.clear();
      for (const [name, child] of entries) {
        inode.entries.set(name, child);
        child.parent = inode;
        child.name = name;
        child.isGone = false;
      }
    }
    this.#dirty.clear();
    this.#changed();
    this.closeAll();
    this.#over.clear();
    this.#mounts.splice(1);
  }

  // --- watching

  watch(inode: Inode, watcher: EventEmitter): () => void {
    const set = this.#watchers.get(inode) ?? new Set();
    this.#watchers.set(inode, set);
    set.add(watcher);
    return () => set.delete(watcher);
  }

  #tell(inode: Inode, type: string, name: string): void {
    const set = this.#watchers.get(inode);
    if (set !== undefined) for (const watcher of set) watcher.emit('raw', type, name);
  }
}
