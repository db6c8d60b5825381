// Single files of a cgroup that may go away meanwhile, or that not every kernel has. Shared by v1 and v2.
import { existsSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { errnoOf } from '../../lib/errors.ts';
import { isGone } from './remove-tree.ts';

/** Undefined when the file, or the whole cgroup, is not there. */
export async function readValue(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (err) {
    if (isGone(err)) return undefined;
    throw err;
  }
}

/** The same at once, for files the kernel has an answer for without summing anything up. */
export function readNow(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (err) {
    if (isGone(err)) return undefined;
    throw err;
  }
}

/** Writes a file that older kernels do not have. */
export async function writeIfThere(path: string, value: number | string): Promise<void> {
  try {
    await writeFile(path, String(value), { flag: 'r+' });
  } catch (err) {
    if (errnoOf(err) !== 'ENOENT') throw err;
  }
}

/** At once: there is no disk behind a cgroup, and going through a thread costs several times the call. */
export const isThere = (path: string): boolean => existsSync(path);
