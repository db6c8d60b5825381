import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startApiServer } from './start-api-server.ts';

/** Files that others could read, given the modes of the folders above them. */
async function readable(folder: string): Promise<string[]> {
  if (((await stat(folder)).mode & 0o077) === 0) return [];
  const found: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) found.push(...(await readable(path)));
    else if (((await stat(path)).mode & 0o077) !== 0) found.push(path);
  }
  return found;
}

for (const [name, prepare] of [
  ['a new folder', (): Promise<void> => Promise.resolve()],
  [
    'a folder that others could enter',
    async (dir: string): Promise<void> => {
      await mkdir(dir);
      await chmod(dir, 0o755);
    },
  ],
  [
    'a folder with a database that others could read',
    async (dir: string): Promise<void> => {
      await mkdir(dir);
      await writeFile(join(dir, 'cluster.db'), '', { mode: 0o644 });
      await chmod(join(dir, 'cluster.db'), 0o644);
    },
  ],
] as const)
  test(`other users can read nothing of a cluster in ${name}`, async () => {
    const parent = await mkdtemp(join(tmpdir(), 'modes-'));
    await chmod(parent, 0o755);
    const before = process.umask(0);
    const dir = join(parent, 'api');
    await prepare(dir);
    const running = await startApiServer({ dir, controllers: false });
    try {
      assert.deepEqual(await readable(parent), []);
      assert.equal((await stat(dir)).mode & 0o777, 0o700);
      for (const file of await readdir(dir))
        if (file.startsWith('cluster.db')) assert.equal((await stat(join(dir, file))).mode & 0o777, 0o600, file);
    } finally {
      process.umask(before);
      await running.stop();
      await rm(parent, { recursive: true });
    }
  });
