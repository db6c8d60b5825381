import assert from 'node:assert/strict';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { MountTable, parseMountInfo } from '../host/mounts/mount-table.ts';
import { systemClock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger, type Logger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { DirectorySizes, type DirectorySizesOpts } from './directory-sizes.ts';
import { timePasses, until } from '../../test/harness/until.ts';

const root = mkdtempSync(join(tmpdir(), 'kts-sizes-'));
after(() => rmSync(root, { recursive: true, force: true }));
const never = new AbortController().signal;
const noMounts = new MountTable([]);
const patience = { waitMs: 60_000 };
const sizes = (opts: DirectorySizesOpts = {}): DirectorySizes =>
  new DirectorySizes({ clock: systemClock, log: silentLogger }, { ...patience, ...opts });

let made = 0;
function directory(files = 0): string {
  const path = join(root, `d${made++}`);
  mkdirSync(path);
  for (let i = 0; i < files; i++) writeFileSync(join(path, `f${i}`), '');
  return path;
}
const blocksOf = (...paths: string[]): number => paths.reduce((sum, path) => sum + lstatSync(path).blocks * 512, 0);

/** Every way to count. */
const WAYS: readonly [string, DirectorySizesOpts][] = [
  ['walked as a small one', {}],
  ['by find', { largeEntries: 0 }],
  ['walked where prlimit is missing', { largeEntries: 0, find: ['/nonexistent/prlimit'] }],
  ['walked where find is missing', { largeEntries: 0, find: ['prlimit', '--as=100000000', '/nonexistent/find'] }],
  ['walked where another program is found', { largeEntries: 0, find: ['prlimit'] }],
  ['walked where find is another one', { largeEntries: 0, find: ['sh', '-c', 'echo usage >&2; exit 1'] }],
  [
    'walked after find failed on its way',
    { largeEntries: 0, find: ['sh', '-c', 'echo 8000; echo no memory >&2; exit 1'] },
  ],
];

for (const [way, opts] of WAYS)
  describe(`the size of a directory, ${way}`, () => {
    it('has all blocks and inodes; links count once, are not followed, and holes count nothing', async () => {
      const path = directory(20);
      writeFileSync(join(path, 'full'), Buffer.alloc(100_000, 1));
      linkSync(join(path, 'full'), join(path, 'again'));
      mkdirSync(join(path, 'sub'));
      linkSync(join(path, 'full'), join(path, 'sub', 'and again'));
      writeFileSync(join(path, 'sparse'), '');
      truncateSync(join(path, 'sparse'), 2 ** 30);
      symlinkSync('/usr', join(path, 'link'));
      symlinkSync('full', join(path, 'new\nline'));
      const bytes = blocksOf(path, ...['full', 'sub', 'sparse', 'link', 'new\nline'].map((name) => join(path, name)));
      assert.deepEqual(await sizes(opts).of(path, noMounts, never), { bytes, inodes: 26 });
    });

    it('has nothing of what is mounted below', async () => {
      const path = directory(3);
      const [taken, beside] = [join(path, 'a*[b]?\\'), join(path, 'aXb')];
      for (const each of [taken, beside]) {
        mkdirSync(each);
        writeFileSync(join(each, 'file'), 'x');
      }
      const quoted = taken.replace('\\', '\\134');
      const mounts = new MountTable(
        parseMountInfo(
          `1 0 8:1 / ${path} rw - ext4 d rw\n2 1 8:1 / ${quoted} rw - ext4 d rw\n3 1 8:1 / /else rw - ext4 d rw`,
        ),
      );
      assert.equal((await sizes(opts).of(path, mounts, never)).inodes, 6);
    });

    it('is none when the directory is gone', async () => {
      await assert.rejects(sizes(opts).of(join(root, 'gone'), noMounts, never), { code: 'ENOENT' });
    });
  });

describe('a large directory', () => {
  it('hides no file behind empty ones that are read first', async () => {
    const path = directory(3_000);
    const last = join(path, readdirSync(path).at(-1) ?? '');
    writeFileSync(last, Buffer.alloc(2 ** 20, 1));
    for (const opts of [{}, { find: ['/nonexistent'] }]) {
      const { bytes, inodes } = await sizes(opts).of(path, noMounts, never);
      assert.equal(inodes, 3_001);
      assert.ok(bytes >= 2 ** 20, `${bytes}`);
    }
  });

  it('hides no file in the depth', async () => {
    const path = directory();
    const deep = join(path, 'd/'.repeat(300));
    mkdirSync(deep, { recursive: true });
    writeFileSync(join(deep, 'file'), Buffer.alloc(2 ** 20, 1));
    for (const opts of [{}, { find: ['/nonexistent'], largeEntries: 10 }]) {
      const { bytes, inodes } = await sizes(opts).of(path, noMounts, never);
      assert.equal(inodes, 302);
      assert.ok(bytes >= 2 ** 20, `${bytes}`);
    }
  });

  it('is told as far as it was seen where there is no find for its depth', async () => {
    const { log, lines } = recorded();
    const path = directory();
    mkdirSync(join(path, 'd/'.repeat(300)), { recursive: true });
    const counted = new DirectorySizes(
      { clock: systemClock, log },
      { ...patience, largeEntries: 10, find: ['/nonexistent'], bounds: { levels: 100 } },
    );
    for (let i = 0; i < 2; i++) assert.equal((await counted.of(path, noMounts, never)).inodes, 101);
    assert.equal(lines.length, 1, 'said once');
    assert.match(lines[0] ?? '', /too deep/);
  });

  it('may change while it is counted', async () => {
    const path = directory(100);
    let turns = 0;
    const stop = new AbortController();
    const churn = (async () => {
      for (; !stop.signal.aborted; turns++) {
        mkdirSync(join(path, 'sub', 'sub'), { recursive: true });
        for (let i = 0; i < 50; i++) writeFileSync(join(path, 'sub', `${i}`), '');
        await systemClock.sleep(1, stop.signal);
        rmSync(join(path, 'sub'), { recursive: true });
      }
    })();
    const counted = sizes({ largeEntries: 10 });
    for (let i = 0; i < 10; i++) assert.ok((await counted.of(path, noMounts, never)).inodes >= 101);
    stop.abort();
    await churn;
    assert.ok(turns > 0);
  });

  it('is walked again once it is small', async () => {
    const path = directory(20);
    const marker = join(root, 'ran');
    const counted = sizes({ largeEntries: 10, find: ['sh', '-c', 'touch "$0"; exec find "$@"', marker] });
    assert.equal((await counted.of(path, noMounts, never)).inodes, 21);
    assert.ok(existsSync(marker));
    for (let i = 5; i < 20; i++) rmSync(join(path, `f${i}`));
    assert.equal((await counted.of(path, noMounts, never)).inodes, 6);
    rmSync(marker);
    assert.equal((await counted.of(path, noMounts, never)).inodes, 6);
    assert.ok(!existsSync(marker), 'no process for a small one');
  });
});

function recorded() {
  const lines: string[] = [];
  const log: Logger = {
    ...silentLogger,
    warn: (message, fields) => void lines.push(`${message} ${fields?.['reason']}`),
  };
  return { log, lines };
}

/** Runs `script`, then find, in place of find alone: `$0` is a directory of the test's. */
const scripted = (script: string, own: string): readonly string[] => ['sh', '-c', `${script}; exec find "$@"`, own];
const isRunning = (pid: string): boolean => {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};
/** While there is `hangs` it lists a hundred entries more than it finds, and then stays. */
const SLOW = 'if [ -e "$0/hangs" ]; then yes 8 | head -n 100; echo $$ > "$0/pid"; exec sleep 60; fi';

describe('a count that takes long', () => {
  const setup = (files: number) => {
    const own = directory();
    const clock = new ManualClock();
    const { log, lines } = recorded();
    const find = scripted(SLOW, own);
    const counted = new DirectorySizes({ clock, log }, { largeEntries: 10, waitMs: 2_000, deadlineMs: 600_000, find });
    const path = directory(files);
    const pid = (): string => (existsSync(join(own, 'pid')) ? readFileSync(join(own, 'pid'), 'utf8').trim() : '');
    const ask = async (): Promise<number> => {
      const asked = counted.of(path, noMounts, never);
      await until('a child runs', () => pid() !== '');
      await clock.advance(2_000);
      return (await asked).inodes;
    };
    return { own, clock, lines, counted, path, pid, ask };
  };

  it('is told as far as it is, goes on, ends at its deadline, and says so once', async () => {
    const t = setup(20);
    writeFileSync(join(t.own, 'hangs'), '');
    // What it listed takes a moment to arrive.
    await until('all of it is told', async () => (await t.ask()) === 100, 30_000, 100);
    const first = t.pid();
    assert.equal(await t.ask(), 100);
    assert.equal(t.pid(), first, 'the same count');
    await t.clock.advance(600_000);
    await until('the child ends', () => !isRunning(first));
    await until('it is said', () => t.lines.length > 0);
    assert.deepEqual(t.lines, [
      'directory was not counted to the end, it may hold more than is told not counted within 10m0s',
    ]);
    rmSync(join(t.own, 'pid'));
    assert.equal(await t.ask(), 100);
    await t.clock.advance(600_000);
    await until('the child ends', () => !isRunning(t.pid()));
    assert.equal(t.lines.length, 1);
    rmSync(join(t.own, 'hangs'));
    assert.equal((await t.counted.of(t.path, noMounts, never)).inodes, 21, 'a whole count is what counts');
  });

  it('is told no smaller than the last whole one', async () => {
    const t = setup(300);
    assert.equal((await t.counted.of(t.path, noMounts, never)).inodes, 301);
    writeFileSync(join(t.own, 'hangs'), '');
    assert.equal(await t.ask(), 301);
    await t.clock.advance(600_000);
    await until('the child ends', () => !isRunning(t.pid()));
    rmSync(join(t.own, 'pid'));
    assert.equal(await t.ask(), 301);
    await t.clock.advance(600_000);
  });
});

it('counts end with their signal, two at a time', async () => {
  const own = directory();
  const stop = new AbortController();
  const find = scripted('echo $$ > "$0/$$"; exec sleep 60', own);
  const counted = sizes({ largeEntries: 1, find });
  const asked = [1, 2, 3].map(() => counted.of(directory(5), noMounts, stop.signal));
  await until('two run', () => readdirSync(own).length === 2);
  await timePasses(100, 'nothing to happen');
  const pids = readdirSync(own);
  assert.equal(pids.length, 2);
  stop.abort(new KubeletError('cancelled', 'the end'));
  for (const each of asked) await assert.rejects(each, /the end/);
  await until('they end', () => !pids.some(isRunning));
  assert.equal(readdirSync(own).length, 2, 'no other is begun');
});
