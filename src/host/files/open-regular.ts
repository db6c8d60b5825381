// Opens files that somebody else may have replaced by anything: a pipe whose opening waits for ever and takes a shared
// thread with it, a device that does something when it is opened, a link to another file. The name is pinned first, looked
// at, and only a regular file is opened.
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { KubeletError } from '../../lib/errors.ts';
import { O_PATH } from './open-dir.ts';

const { O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
const READ = O_RDONLY | O_NONBLOCK | O_NOCTTY;

export type RegularOptions = {
  /** A link in the last place is followed. Links further up always are. */
  readonly follow?: boolean;
};

/** For reading. Rejects with `invalid` for everything that is no regular file, without opening it. */
export async function openRegular(path: string, options?: RegularOptions): Promise<FileHandle> {
  const file = await openUnlessEmpty(path, options, false);
  if (file === undefined) throw new KubeletError('internal', `${path} was not opened`);
  return file;
}

/** The same; undefined for an empty file, which is not opened for that. */
export const openIfAny = (path: string): Promise<FileHandle | undefined> => openUnlessEmpty(path, {}, true);

async function openUnlessEmpty(
  path: string,
  { follow = false }: RegularOptions = {},
  skipEmpty: boolean,
): Promise<FileHandle | undefined> {
  const pinned = await pin(path, follow);
  try {
    const stat = await pinned.stat();
    if (!stat.isFile()) throw new KubeletError('invalid', `${path} is not a regular file`);
    return skipEmpty && stat.size === 0 ? undefined : await reopen(pinned);
  } finally {
    await pinned.close();
  }
}

/** Names a file without opening it. */
export const pin = (path: string, follow: boolean): Promise<FileHandle> =>
  open(path, O_PATH | (follow ? 0 : O_NOFOLLOW));

/** What is pinned, for reading; a directory or regular file. */
export const reopen = (pinned: FileHandle): Promise<FileHandle> => open(`/proc/self/fd/${pinned.fd}`, READ);
