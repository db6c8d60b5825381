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
export async function openRegular(path: string, { follow = false }: RegularOptions = {}): Promise<FileHandle> {
  const pinned = await pin(path, follow);
  try {
    if (!(await pinned.stat()).isFile()) throw new KubeletError('invalid', `${path} is not a regular file`);
    return await reopen(pinned);
  } finally {
    await pinned.close();
  }
}

/** Names a file without opening it. */
export const pin = (path: string, follow: boolean): Promise<FileHandle> =>
  open(path, O_PATH | (follow ? 0 : O_NOFOLLOW));

/** What is pinned, for reading; a directory or regular file. */
export const reopen = (pinned: FileHandle): Promise<FileHandle> => open(`/proc/self/fd/${pinned.fd}`, READ);
