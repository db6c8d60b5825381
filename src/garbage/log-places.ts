// The log directories of pods and the links to logs, as the collector sees them.
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../lib/errors.ts';

/** A name in a directory is one name, never a way out of it. */
const isPlainName = (name: string): boolean => name !== '.' && name !== '..' && !name.includes('/');

export async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return (await readdir(directory)).filter(isPlainName);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return [];
    throw err;
  }
}

/** Links in `/var/log/containers` whose logs are no more. */
export async function deadLinks(directory: string, limit: number): Promise<readonly string[]> {
  const dead: string[] = [];
  for (const name of await namesIn(directory)) {
    if (dead.length === limit) break;
    if (!name.endsWith('.log')) continue;
    try {
      await stat(join(directory, name));
    } catch (err) {
      if (errnoOf(err) === 'ENOENT') dead.push(name);
    }
  }
  return dead;
}

export const removeTree = (path: string): Promise<void> => rm(path, { recursive: true, force: true });
export const removeFile = (path: string): Promise<void> => rm(path, { force: true });
