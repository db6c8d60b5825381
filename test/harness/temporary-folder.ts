// Folders that go with the process of a test, also when a hook fails before it comes to remove them.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const made = new Set<string>();

/** A new folder whose name begins with `prefix`, in the folder of this run. */
export function temporaryFolder(prefix: string, parent = tmpdir()): string {
  const folder = mkdtempSync(join(parent, prefix));
  if (made.size === 0) process.once('exit', () => made.forEach(removeFolder));
  made.add(folder);
  return folder;
}

/** Removes the folder now; what is mounted beneath is unmounted before, so that nothing is removed through a mount. */
export function removeFolder(folder: string): void {
  unmountBeneath(folder);
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

export function unmountBeneath(folder: string): void {
  for (const point of mountsBeneath(folder).reverse()) execFileSync('umount', ['-l', point]);
}

/** In the order in which they were mounted. */
export const mountsBeneath = (folder: string): string[] =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) =>
      (line.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(parseInt(code, 8))),
    )
    .filter((point) => point.startsWith(`${folder}/`));
