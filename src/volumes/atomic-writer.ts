// Writes a set of files into a volume so that a reader sees either all of the old or all of the new ones:
//   <volume>/..2026_11_15_03_12_17.3509449288/name   the files
//   <volume>/..data -> ..2026_11_15_03_12_17.3509449288
//   <volume>/name -> ..data/name
// A container may have changed anything in the volume: names are opened beneath the volume's own descriptor and no link
// found there is ever followed, so the worst it can do is to spoil its own volume until the next write.
import type { Clock } from '../lib/clock.ts';
import { errnoOf, KubeletError } from '../lib/errors.ts';
import { atOnce, onThreads } from '../host/files/file-calls.ts';
import { OpenDir } from '../host/files/open-dir.ts';
import { removeTree } from '../host/files/remove-tree.ts';

export type PayloadFile = {
  readonly data: Uint8Array;
  readonly mode: number;
  /** Owner of the file; root if not given. */
  readonly uid?: number;
};
/** Files by their path relative to the volume. */
export type Payload = ReadonlyMap<string, PayloadFile>;

type WriteOptions = { readonly unseen?: boolean; readonly mountPoints?: ReadonlySet<string> };

const DATA = '..data';
const DATA_TMP = '..data_tmp';
const STAMP = /^\.\.\d{4}_\d{2}_\d{2}_\d{2}_\d{2}_\d{2}\.\d+$/;
const DIR_MODE = 0o755;
const MAX_PATH = 4096;
const MAX_NAME = 255;
/** So many small files take a millisecond or two; more would hold up everything else. */
const AT_ONCE_FILES = 32;

/** Why a path cannot be a file of a volume, or undefined if it can. */
export function payloadPathProblem(path: string): string | undefined {
  if (path === '') return 'invalid path: must not be empty';
  if (path.startsWith('/')) return `invalid path: must be relative path: ${path}`;
  if (Buffer.byteLength(path) > MAX_PATH) return `invalid path: must be less than or equal to ${MAX_PATH} characters`;
  const elements = path.split('/');
  if (elements.includes('..')) return `invalid path: must not contain '..': ${path}`;
  if (path.includes('\0')) return 'invalid path: must not contain a NUL byte';
  if (elements.some((e) => Buffer.byteLength(e) > MAX_NAME)) {
    return `invalid path: elements must be less than or equal to ${MAX_NAME} characters`;
  }
  if (elements[0]?.startsWith('..') === true) return `invalid path: must not start with '..': ${path}`;
  return undefined;
}

/** Elements of a path as a filesystem sees them: no empty ones, no `.`. */
const elementsOf = (path: string): string[] => path.split('/').filter((e) => e !== '' && e !== '.');

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

export class AtomicWriter {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Makes `payload` the content of the volume at `root`. `setPermissions` runs after the new files are written and
   * before a reader can see them. Returns whether anything had to be written. `unseen`: a file system in memory that
   * nobody but the caller has had in hand yet. `mountPoints`: names that stay the directories they are.
   */
  async write(
    root: string,
    payload: Payload,
    setPermissions: () => Promise<void>,
    { unseen = false, mountPoints = new Set() }: WriteOptions,
    signal: AbortSignal,
  ): Promise<boolean> {
    const files = new Map<string, PayloadFile>();
    for (const [path, file] of payload) {
      const problem = payloadPathProblem(path);
      if (problem !== undefined) throw new KubeletError('invalid', problem);
      files.set(elementsOf(path).join('/'), file);
    }
    const calls = unseen && files.size <= AT_ONCE_FILES ? atOnce : onThreads;
    const work = async (volume: OpenDir): Promise<boolean> => {
      const current = await currentStamp(volume);
      if (current !== undefined && (await holdsExactly(volume, current, files))) {
        await showNames(volume, files, mountPoints, signal);
        await removeLeftovers(volume, current, files, signal);
        return false;
      }
      const stamp = await this.#writeStamped(volume, files, signal);
      try {
        await setPermissions();
        await point(volume, stamp, signal);
      } catch (err) {
        await removeTree(volume, stamp, signal);
        throw err;
      }
      await showNames(volume, files, mountPoints, signal);
      await removeLeftovers(volume, stamp, files, signal);
      return true;
    };
    return OpenDir.using(root, work, calls);
  }

  async #writeStamped(volume: OpenDir, files: Payload, signal: AbortSignal): Promise<string> {
    const at = new Date(this.#clock.now()).toISOString().slice(0, 19).replaceAll(/[-T:]/g, '_');
    for (;;) {
      const stamp = `..${at}.${Math.floor(this.#clock.random() * 2 ** 32)}`;
      let dir: OpenDir;
      try {
        dir = await volume.mkdir(stamp, DIR_MODE);
      } catch (err) {
        if (errnoOf(err) !== 'EEXIST') throw err;
        await removeTree(volume, stamp, signal);
        continue;
      }
      try {
        await writeFiles(dir, files);
        return stamp;
      } catch (err) {
        await removeTree(volume, stamp, signal);
        throw err;
      } finally {
        await dir.close();
      }
    }
  }
}

type Tree = { readonly files: Map<string, PayloadFile>; readonly dirs: Map<string, Tree> };

function treeOf(files: Payload): Tree {
  const root: Tree = { files: new Map(), dirs: new Map() };
  for (const [path, file] of files) {
    const elements = elementsOf(path);
    const name = elements.pop() ?? '';
    let node = root;
    for (const element of elements) {
      let next = node.dirs.get(element);
      if (next === undefined) node.dirs.set(element, (next = { files: new Map(), dirs: new Map() }));
      node = next;
    }
    node.files.set(name, file);
  }
  return root;
}

const writeFiles = (dir: OpenDir, files: Payload): Promise<void> => writeTree(dir, treeOf(files));

async function writeTree(dir: OpenDir, tree: Tree): Promise<void> {
  for (const [name, file] of tree.files) await dir.createFile(name, file.data, file.mode, file.uid);
  for (const [name, below] of tree.dirs) {
    const child = await dir.mkdir(name, DIR_MODE);
    try {
      await writeTree(child, below);
    } finally {
      await child.close();
    }
  }
}

/** The directory `..data` leads to, if it is one of ours and there. */
async function currentStamp(volume: OpenDir): Promise<string | undefined> {
  const target = await volume.readlink(DATA);
  if (target === undefined || !STAMP.test(target)) return undefined;
  return (await volume.lstat(target))?.isDirectory() === true ? target : undefined;
}

async function holdsExactly(volume: OpenDir, stamp: string, files: Payload): Promise<boolean> {
  const dir = await volume.openDir(stamp);
  try {
    return await treeHolds(dir, treeOf(files));
  } finally {
    await dir.close();
  }
}

async function treeHolds(dir: OpenDir, tree: Tree): Promise<boolean> {
  const names = await dir.list();
  if (names.length !== tree.files.size + tree.dirs.size) return false;
  for (const [name, file] of tree.files) {
    const data = await dir.readFile(name, file.data.length);
    if (data === undefined || !sameBytes(data, file.data)) return false;
  }
  for (const [name, below] of tree.dirs) {
    if ((await dir.lstat(name))?.isDirectory() !== true) return false;
    const child = await dir.openDir(name);
    try {
      if (!(await treeHolds(child, below))) return false;
    } finally {
      await child.close();
    }
  }
  return true;
}

/** Swaps `..data` over to `stamp` in one step. */
async function point(volume: OpenDir, stamp: string, signal: AbortSignal): Promise<void> {
  await removeTree(volume, DATA_TMP, signal);
  await volume.symlink(stamp, DATA_TMP);
  if ((await volume.lstat(DATA))?.isDirectory() === true) await removeTree(volume, DATA, signal);
  await volume.rename(DATA_TMP, DATA);
}

/** What shows in the volume itself, with the owner of the first file of that name. */
function topNames(files: Payload): Map<string, number | undefined> {
  const names = new Map<string, number | undefined>();
  for (const [path, { uid }] of files) {
    const [name = ''] = elementsOf(path);
    if (!names.has(name)) names.set(name, uid);
  }
  return names;
}

async function showNames(
  volume: OpenDir,
  files: Payload,
  mountPoints: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  for (const [name, uid] of topNames(files)) {
    if (mountPoints.has(name) && (await volume.lstat(name))?.isDirectory() === true) continue;
    const target = `${DATA}/${name}`;
    try {
      await showName(volume, name, target, uid);
      continue;
    } catch (err) {
      if (errnoOf(err) !== 'EEXIST') throw err;
    }
    if ((await volume.readlink(name)) === target) continue;
    await removeTree(volume, name, signal);
    await showName(volume, name, target, uid);
  }
}

/** The link belongs to whom its file does. */
async function showName(volume: OpenDir, name: string, target: string, uid: number | undefined): Promise<void> {
  await volume.symlink(target, name);
  const made = uid === undefined ? undefined : await volume.lstat(name);
  if (uid !== undefined && made !== undefined) await volume.lchown(name, uid, made.gid);
}

/** Removes names that are no longer in the payload, and directories of earlier or interrupted writes. */
async function removeLeftovers(volume: OpenDir, stamp: string, files: Payload, signal: AbortSignal): Promise<void> {
  const shown = topNames(files);
  for (const name of await volume.list()) {
    // No file of a payload has a name that is not UTF-8.
    if (typeof name !== 'string' || name === DATA || name === stamp || shown.has(name)) continue;
    const stale = name === DATA_TMP || STAMP.test(name) || (await volume.readlink(name)) === `${DATA}/${name}`;
    if (stale) await removeTree(volume, name, signal);
  }
}
