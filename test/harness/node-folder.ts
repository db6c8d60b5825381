// The folder of a test node: named after its process, so that what a killed run left behind can be told and removed.
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { unmountBeneath } from './temporary-folder.ts';

const PARENT = '/tmp';
const PREFIX = 'kts-node-';

export async function makeNodeFolder(): Promise<string> {
  for (const name of await readdir(PARENT)) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    // Whoever starts at the same time finds it too: what one of them does not manage, the other does, or the next.
    if (pid !== undefined && !existsSync(`/proc/${pid}`))
      await removeNodeFolder(join(PARENT, name)).catch(() => undefined);
  }
  const dir = await mkdtemp(join(PARENT, `${PREFIX}${process.pid}-`));
  await chmod(dir, 0o711); // pods with users of their own pass through
  return dir;
}

/** Pods that still ran leave their volumes mounted. */
export async function removeNodeFolder(dir: string): Promise<void> {
  unmountBeneath(dir);
  await rm(dir, { recursive: true, force: true, maxRetries: 3 });
}
