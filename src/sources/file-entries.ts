// Which files hold manifests, and their contents with a limit. Follows links, opens nothing but regular files.
import { lstat, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';

export const MAX_MANIFEST_BYTES = 10 * 1024 * 1024;
const MANIFEST = /\.(?:ya?ml|json)$/i;

/** Changes whenever the file's content may have. */
export type FileStamp = string;

export type Listing = {
  readonly isDirectory: boolean;
  /** Sorted paths of what may be manifests. */
  readonly files: readonly string[];
  /** Names in the directory that are none. */
  readonly ignored: readonly string[];
  /** Identity of the directory, or of a single file's parent: tells a replaced one from the same one. */
  readonly inode: string;
};

export const isManifestName = (name: string): boolean => !name.startsWith('.') && MANIFEST.test(name);

/** A path that does not exist has no manifests. A link that leads nowhere exists, and cannot be read. */
export async function listManifests(path: string): Promise<Listing> {
  const none: Listing = { isDirectory: false, files: [], ignored: [], inode: '' };
  let info;
  try {
    info = await stat(path);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' && !(await isDangling(path))) return none;
    throw err;
  }
  const inode = `${info.dev}:${info.ino}`;
  if (!info.isDirectory()) return { isDirectory: false, files: [path], ignored: [], inode };
  const names = (await readdir(path)).sort();
  return {
    isDirectory: true,
    files: names.filter(isManifestName).map((name) => join(path, name)),
    ignored: names.filter((name) => !name.startsWith('.') && !isManifestName(name)),
    inode,
  };
}

/** The file system that a link leads into may not be mounted yet. */
const isDangling = (path: string): Promise<boolean> =>
  lstat(path).then(
    (info) => info.isSymbolicLink(),
    () => false,
  );

export type FileContent = {
  readonly stamp: FileStamp;
  /** Absent when the stamp is the one already known. */
  readonly text?: string;
  readonly modifiedMs: number;
};

/** The file's text, or undefined when it is gone or is no regular file. */
export async function readManifestFile(path: string, known?: FileStamp): Promise<FileContent | undefined> {
  try {
    const before = await stat(path, { bigint: true });
    if (!before.isFile()) return undefined;
    const stamp = `${before.dev}:${before.ino}:${before.size}:${before.mtimeNs}:${before.ctimeNs}`;
    const modifiedMs = Number(before.ctimeNs / 1_000_000n);
    if (stamp === known) return { stamp, modifiedMs };
    return { stamp, modifiedMs, text: await readBounded(path) };
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' && !(await isDangling(path))) return undefined;
    if (err instanceof KubeletError) throw err;
    throw new KubeletError('unavailable', `cannot be read: ${messageOf(err)}`, { cause: err });
  }
}

async function readBounded(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const tooLarge = (): KubeletError =>
      new KubeletError('invalid', `is larger than ${MAX_MANIFEST_BYTES / 1024 / 1024} MiB`);
    if (size > MAX_MANIFEST_BYTES) throw tooLarge();
    // A file that grows while it is read must not be read for ever.
    const buffer = Buffer.alloc(size + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
      if (length === buffer.length) break;
    }
    return buffer.toString('utf8', 0, Math.min(length, size));
  } finally {
    await file.close();
  }
}
