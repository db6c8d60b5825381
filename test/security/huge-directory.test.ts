// A pod fills a volume with names. Measuring and removing it takes no more memory than for a small one: both are done by a
// process that may not have enough for all the names.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';

const NAMES = 40_000;
const HEAP_MIB = 12;
const root = mkdtempSync(join(tmpdir(), 'kts-huge-'));
after(() => rmSync(root, { recursive: true, force: true }));
const SRC = join(import.meta.dirname, '..', '..', 'src');

/** Runs a module's text with little memory. */
function withLittleMemory(script: string): {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
} {
  const flags = [
    `--max-old-space-size=${HEAP_MIB}`,
    '--max-semi-space-size=1',
    '--no-warnings',
    '--input-type=module-typescript',
  ];
  const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, '-e', script], {
    encoding: 'utf8',
    cwd: root,
  });
  return { status, stdout, stderr };
}

it('a huge directory is measured and removed within a memory cap', () => {
  const huge = join(root, 'huge');
  mkdirSync(huge);
  const long = 'x'.repeat(230);
  for (let i = 0; i < NAMES; i++) writeFileSync(join(huge, `${long}${i}`), '');
  const all = withLittleMemory(
    `import { readdirSync } from 'node:fs'; console.log(readdirSync(${JSON.stringify(huge)}).length)`,
  );
  assert.notEqual(all.status, 0, 'the cap is too low for all names');
  const measured = withLittleMemory(`
    import { usageOf } from '${SRC}/volumes/volume-stats.ts';
    import { MountTable } from '${SRC}/host/mounts/mount-table.ts';
    const { inodesUsed } = await usageOf(${JSON.stringify(huge)}, new MountTable([]), new AbortController().signal);
    console.log(inodesUsed);`);
  assert.equal(measured.stdout, `${NAMES + 1}\n`, measured.stderr.slice(-500));
  const removed = withLittleMemory(`
    import { OpenDir } from '${SRC}/host/files/open-dir.ts';
    await OpenDir.using(${JSON.stringify(root)}, (dir) => dir.removeTree('huge'));
    console.log('removed');`);
  assert.equal(removed.stdout, 'removed\n', removed.stderr.slice(-500));
  assert.deepEqual(readdirSync(root), []);
});
