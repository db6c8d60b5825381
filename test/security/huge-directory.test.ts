// A pod fills a volume with names. Measuring and removing it takes no more memory than for a small one: both are done by a
// process that may not have enough for all the names.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { timePasses, until } from '../harness/until.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const NAMES = 40_000;
const HEAP_MIB = 12;
const root = temporaryFolder('kts-huge-');
const huge = join(root, 'huge');
mkdirSync(huge);
for (let i = 0; i < NAMES; i++) writeFileSync(join(huge, `${'x'.repeat(230)}${i}`), '');
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

const measure = (path: string, opts: object): string => `
  import { DirectorySizes } from '${SRC}/volumes/directory-sizes.ts';
  import { MountTable } from '${SRC}/host/mounts/mount-table.ts';
  import { systemClock } from '${SRC}/lib/clock.ts';
  import { silentLogger } from '${SRC}/lib/logger.ts';
  const opts = { waitMs: 120_000, ...${JSON.stringify(opts)} };
  const sizes = new DirectorySizes({ clock: systemClock, log: silentLogger }, opts);
  const size = sizes.of(${JSON.stringify(path)}, new MountTable([]), new AbortController().signal);`;

const childrenOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
function isAlive(pid: string): boolean {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

it('nothing goes on measuring for an agent that was killed', async () => {
  // The agent stands still as soon as it has a child, which then waits: not all its lines, long ones for links, fit into a pipe.
  const links = mkdtempSync(join(root, 'links'));
  const file = join(links, 'file');
  writeFileSync(file, '');
  for (let i = 0; i < NAMES; i++) linkSync(file, join(links, `${i}`));
  const script = `${measure(links, { largeEntries: 0 })}
    import { readFileSync } from 'node:fs';
    const look = () => readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8') === '' ? setImmediate(look) : halt();
    const halt = () => { for (;;); };
    look();`;
  const args = ['--no-warnings', '--input-type=module-typescript', '-e', script];
  const agent = spawn(process.execPath, args, { stdio: 'ignore', cwd: root });
  try {
    const child = await until('it has a child', () => childrenOf(agent.pid ?? 0)[0]);
    await timePasses(500, 'nothing to happen');
    assert.ok(isAlive(child), 'it waits to be read');
    agent.kill('SIGKILL');
    await until('the child ends', () => !isAlive(child));
  } finally {
    agent.kill('SIGKILL');
    rmSync(links, { recursive: true });
  }
});

it('a huge directory is measured and removed within a memory cap', () => {
  const all = withLittleMemory(
    `import { readdirSync } from 'node:fs'; console.log(readdirSync(${JSON.stringify(huge)}).length)`,
  );
  assert.notEqual(all.status, 0, 'the cap is too low for all names');
  for (const opts of [{}, { find: ['/nonexistent'] }]) {
    const measured = withLittleMemory(`${measure(huge, opts)}
      console.log((await size).inodes);`);
    assert.equal(measured.stdout, `${NAMES + 1}\n`, measured.stderr.slice(-500));
  }
  const removed = withLittleMemory(`
    import { OpenDir } from '${SRC}/host/files/open-dir.ts';
    import { removeTree } from '${SRC}/host/files/remove-tree.ts';
    const { signal } = new AbortController();
    await OpenDir.using(${JSON.stringify(root)}, (dir) => removeTree(dir, 'huge', signal));
    console.log('removed');`);
  assert.equal(removed.stdout, 'removed\n', removed.stderr.slice(-500));
  assert.deepEqual(readdirSync(root), []);
});
