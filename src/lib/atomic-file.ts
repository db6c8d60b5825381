// Files that are either the old or the new content, whatever happens to the machine in between.
import { randomBytes } from 'node:crypto';
import { open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { errnoOf } from './errors.ts';
import { namingPath } from './file-error.ts';
import { Lru } from './lru.ts';

/** Names the writer, so that a later one knows what a killed process has left. */
const TEMPORARY = /\.(\d+)-(\d+)-[0-9a-f]{12}\.tmp$/;
/** Names of this thread that are being written. */
const writing = new Set<string>();
/** Directories in which nothing of killed processes is left: looking again with every write costs more than it finds. */
const DIRECTORIES = 64;
let clean = new Lru<string, true>(DIRECTORIES);

/** A process that begins anew in place of a killed one, as on a simulated machine, knows nothing of what that one wrote. */
export function forgetWrites(): void {
  writing.clear();
  clean = new Lru(DIRECTORIES);
}

/** Writes `data` beside `path`, syncs it, renames it over `path` and syncs the directory. */
export const writeFileAtomic = (path: string, data: string | Uint8Array, mode: number): Promise<void> =>
  namingPath(
    () => path,
    () => writeAtomic(path, data, mode),
  );

async function writeAtomic(path: string, data: string | Uint8Array, mode: number): Promise<void> {
  const temporary = `${path}.${process.pid}-${threadId}-${randomBytes(6).toString('hex')}.tmp`;
  writing.add(basename(temporary));
  try {
    await replaceBy(temporary, path, data, mode);
  } catch (err) {
    await rm(temporary, { force: true });
    throw err;
  } finally {
    writing.delete(basename(temporary));
  }
  if (clean.get(dirname(path)) === undefined) await removeLeftOver(dirname(path));
  await syncDirectory(dirname(path));
}

/** From here on the names in it are as they are, whatever happens to the machine. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function replaceBy(temporary: string, path: string, data: string | Uint8Array, mode: number): Promise<void> {
  const file = await open(temporary, 'wx', mode);
  try {
    // What only the owner gets is nothing that a umask takes away.
    if ((mode & ~0o700) !== 0) await file.chmod(mode);
    await file.writeFile(data);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

/** A process that was killed between writing and renaming; what cannot be removed is tried again at the next write. */
async function removeLeftOver(directory: string): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  const left = await Promise.all(names.filter(isLeftOver).map((name) => isLeft(join(directory, name))));
  if (!left.includes(true)) clean.set(directory, true);
}

const isLeft = (path: string): Promise<boolean> =>
  rm(path, { force: true }).then(
    () => false,
    () => true,
  );

function isLeftOver(name: string): boolean {
  const [, pid, thread] = TEMPORARY.exec(name) ?? [];
  if (pid === undefined || writing.has(name)) return false;
  // In a container the next agent has the same number as the killed one.
  if (Number(pid) === process.pid) return Number(thread) === threadId;
  return !isAlive(Number(pid));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (err) {
    return errnoOf(err) !== 'ESRCH';
  }
}
