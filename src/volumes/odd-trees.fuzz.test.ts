// Random trees of whatever names a file system takes: they are counted as du(1) counts them, given to a group and removed as
// a whole.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import fc from 'fast-check';
import { OpenDir } from '../host/files/open-dir.ts';
import { removeTree } from '../host/files/remove-tree.ts';
import { MountTable } from '../host/mounts/mount-table.ts';
import { walkDirectory } from './directory-walk.ts';
import { FIND, findEntries } from './find-entries.ts';
import { giveToGroup } from './ownership.ts';
import { Tally } from './tally.ts';

type Node =
  | { readonly is: 'file' | 'sparse'; readonly size: number }
  | { readonly is: 'link' | 'pipe' | 'symlink' }
  | { readonly is: 'dir'; readonly below: readonly Named[] };
type Named = { readonly name: Uint8Array; readonly node: Node };

const { signal } = new AbortController();
const noMounts = new MountTable([]);
const root = fs.mkdtempSync(join(tmpdir(), 'odd-trees-'));
after(() => fs.rmSync(root, { recursive: true, force: true }));

const byte = fc
  .oneof(fc.integer({ min: 0x80, max: 0xff }), fc.integer({ min: 1, max: 0xff }))
  .filter((b) => b !== 0x2f);
const isName = (name: Uint8Array): boolean => !['.', '..'].includes(String(Buffer.from(name)));
const nameOf = (minLength: number, maxLength: number): fc.Arbitrary<Uint8Array> =>
  fc
    .array(byte, { minLength, maxLength })
    .map((bytes) => Uint8Array.from(bytes))
    .filter(isName);
const name = fc.oneof(
  { weight: 4, arbitrary: nameOf(1, 4) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('café', 'a', '..data', '\u{feff}', '\ufffd', '\n').map((s) => Buffer.from(s)),
  },
  { weight: 1, arbitrary: nameOf(255, 255) },
);
const { entries } = fc.letrec<{ entries: readonly Named[]; node: Node }>((tie) => ({
  entries: fc.uniqueArray(fc.record({ name, node: tie('node') }), {
    maxLength: 6,
    selector: (each) => Buffer.from(each.name).toString('hex'),
  }),
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ is: fc.constantFrom('file' as const, 'sparse' as const), size: fc.integer({ min: 0, max: 9_000 }) }),
    fc.record({ is: fc.constantFrom('link' as const, 'pipe' as const, 'symlink' as const) }),
    fc.record({ is: fc.constant('dir' as const), below: tie('entries') }),
  ),
}));

const within = (dir: Buffer, entry: Uint8Array): Buffer => Buffer.concat([dir, Buffer.from('/'), entry]);

/** `first`: the file that further names are given to. */
function make(dir: Buffer, below: readonly Named[], first: Buffer): void {
  for (const each of below) {
    const path = within(dir, each.name);
    const { node } = each;
    if (node.is === 'dir') {
      fs.mkdirSync(path, 0o700);
      make(path, node.below, first);
    } else if (node.is === 'file') fs.writeFileSync(path, Buffer.alloc(node.size, 1), { mode: 0o600 });
    else if (node.is === 'sparse') fs.closeSync(truncated(path, node.size * 1024));
    else if (node.is === 'link') fs.linkSync(first, path);
    else if (node.is === 'symlink') fs.symlinkSync(Buffer.from([0xe9, 0x2f, 0xff]), path);
    else {
      execFileSync('mkfifo', [join(root, 'pipe')]);
      fs.renameSync(join(root, 'pipe'), path);
    }
  }
}

function truncated(path: Buffer, size: number): number {
  const fd = fs.openSync(path, 'wx', 0o600);
  fs.ftruncateSync(fd, size);
  return fd;
}

/** Every name in the tree, each byte one character. */
function* all(dir: Buffer): Generator<Buffer> {
  yield dir;
  for (const entry of fs.readdirSync(dir, { encoding: 'buffer' })) {
    const path = within(dir, entry);
    if (fs.lstatSync(path).isDirectory()) yield* all(path);
    else yield path;
  }
}

const du = (path: string, ...how: string[]): number =>
  Number(execFileSync('du', ['-s', ...how, path], { encoding: 'latin1' }).split('\t', 1)[0]);

async function check(below: readonly Named[], tree: string): Promise<void> {
  const path = Buffer.from(tree);
  const seen = [new Tally(), new Tally()] as const;
  fs.mkdirSync(path);
  fs.writeFileSync(within(path, Buffer.from('the first')), 'x', { mode: 0o600 });
  make(
    path,
    below.filter((each) => Buffer.from(each.name).toString() !== 'the first'),
    within(path, Buffer.from('the first')),
  );
  const expected = { bytes: du(tree, '-B512') * 512, inodes: du(tree, '--inodes') };
  assert.ok(await walkDirectory(tree, noMounts, seen[0], signal));
  assert.ok(await findEntries(FIND, tree, noMounts, seen[1], signal));
  assert.deepEqual([seen[0].size, seen[1].size], [expected, expected]);
  const refused: unknown[] = [];
  let files = 0;
  const how = { gid: 4711, readOnly: false, changePolicy: 'Always' } as const;
  await giveToGroup(
    tree,
    how,
    signal,
    () => void files++,
    (err) => refused.push(err),
  );
  const names = [...all(path)];
  assert.deepEqual([refused, files], [[], names.length]);
  for (const each of names) assert.equal(fs.lstatSync(each).gid, 4711, each.toString('latin1'));
  await OpenDir.using(root, (dir) => removeTree(dir, 'tree', signal));
  assert.deepEqual(fs.readdirSync(root), []);
}

it(
  'a tree is counted, given away and removed, whatever its names are',
  { skip: process.getuid?.() !== 0 },
  async () => {
    const tree = join(root, 'tree');
    const property = fc.asyncProperty(entries, async (below) => {
      try {
        await check(below, tree);
      } finally {
        execFileSync('rm', ['-rf', tree]);
      }
    });
    await fc.assert(property, { numRuns: 40 });
  },
);
