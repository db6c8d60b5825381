// Opens files below one folder for readers who are not trusted with more: links may lead anywhere, what counts is where
// the opened file really is.
import { readlink, realpath, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { pin, reopen } from '../host/files/open-regular.ts';
import { errnoOf, KubeletError } from '../lib/errors.ts';

/** A regular file or a directory inside `root`, open. Rejects with `notFound` or `denied`, and then has opened nothing. */
export async function openBelow(root: string, path: string): Promise<FileHandle> {
  if (path.includes('\0')) throw new KubeletError('notFound', 'no such file');
  let pinned: FileHandle;
  try {
    pinned = await pin(join(root, join('/', path)), true);
  } catch (err) {
    throw new KubeletError(errnoOf(err) === 'EACCES' ? 'denied' : 'notFound', 'no such file', { cause: err });
  }
  try {
    const [real, top] = await Promise.all([readlink(`/proc/self/fd/${pinned.fd}`), realpath(root)]);
    const inside = real === top || real.startsWith(`${top}/`);
    const stat = await pinned.stat();
    if (inside && (stat.isFile() || stat.isDirectory())) return await reopen(pinned);
    throw new KubeletError('notFound', 'no such file');
  } finally {
    await pinned.close();
  }
}
