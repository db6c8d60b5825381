// Files that are either the old or the new content, whatever happens to the machine in between.
import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes `data` beside `path`, syncs it, renames it over `path` and syncs the directory. */
export async function writeFileAtomic(path: string, data: string | Uint8Array, mode: number): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  const file = await open(temporary, 'wx', mode);
  try {
    await file.chmod(mode);
    await file.writeFile(data);
    await file.sync();
  } catch (err) {
    await rm(temporary, { force: true });
    throw err;
  } finally {
    await file.close();
  }
  try {
    await rename(temporary, path);
  } catch (err) {
    await rm(temporary, { force: true });
    throw err;
  }
  const directory = await open(dirname(path), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
