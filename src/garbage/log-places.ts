// The log directories of pods and the links to logs, as the collector sees them.
import { stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { OpenDir } from '../host/files/open-dir.ts';
import { removeTree } from '../host/files/remove-tree.ts';
import { errnoOf } from '../lib/errors.ts';

/** One pass looks at no more; what is left is for the next. */
const MAX_NAMES = 100_000;

/** Only such as are UTF-8: the kubelet makes no others. */
export async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    const dir = await OpenDir.follow(directory);
    try {
      return await dir.names(() => true, MAX_NAMES);
    } finally {
      await dir.close();
    }
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return [];
    throw err;
  }
}

/** Links in `/var/log/containers` whose logs are no more; those that `stays` says of are not looked at. */
export async function deadLinks(
  directory: string,
  limit: number,
  stays: (name: string) => boolean,
): Promise<readonly string[]> {
  const dead: string[] = [];
  for (const name of await namesIn(directory)) {
    if (dead.length === limit) break;
    if (!name.endsWith('.log') || stays(name)) continue;
    try {
      await stat(join(directory, name));
    } catch (err) {
      if (errnoOf(err) === 'ENOENT') dead.push(name);
    }
  }
  return dead;
}

/** Through the directory's descriptor: nothing that a pod swaps meanwhile leads elsewhere. */
export const removeLogs = (path: string, signal: AbortSignal): Promise<void> =>
  OpenDir.using(dirname(path), (dir) => removeTree(dir, basename(path), signal));

/** Gone is success. One call, where `rm` looks twice before it removes. */
export async function removeFile(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (err) {
    if (errnoOf(err) !== 'ENOENT') throw err;
  }
}
