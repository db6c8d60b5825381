// Opens files below one folder for readers who are not trusted with more: links may lead anywhere, what counts is where
// the opened file really is.
import { constants } from 'node:fs';
import { open, readlink, realpath, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf, KubeletError } from '../lib/errors.ts';

const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** A regular file or a directory inside `root`, open. Rejects with `notFound` or `denied`. */
export async function openBelow(root: string, path: string): Promise<FileHandle> {
  if (path.includes('\0')) throw new KubeletError('notFound', 'no such file');
  let handle: FileHandle;
  try {
    handle = await open(join(root, join('/', path)), FLAGS);
  } catch (err) {
    throw new KubeletError(errnoOf(err) === 'EACCES' ? 'denied' : 'notFound', 'no such file', { cause: err });
  }
  try {
    const [real, top] = await Promise.all([readlink(`/proc/self/fd/${handle.fd}`), realpath(root)]);
    const inside = real === top || real.startsWith(`${top}/`);
    const stat = await handle.stat();
    if (inside && (stat.isFile() || stat.isDirectory())) return handle;
    throw new KubeletError('notFound', 'no such file');
  } catch (err) {
    await handle.close();
    throw err;
  }
}
