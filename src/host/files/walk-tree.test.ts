// What a walk promises: every name once, children before their directory, and bounds for what it holds.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { showName } from './entry-name.ts';
import { atOnce } from './file-calls.ts';
import { OpenDir } from './open-dir.ts';
import { removeTree } from './remove-tree.ts';
import { walkTree, type Visitor, type WalkBounds } from './walk-tree.ts';

const { signal } = new AbortController();
let root: string;
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), 'walk-'))));
afterEach(() => OpenDir.using(tmpdir(), (dir) => removeTree(dir, root.slice(tmpdir().length + 1), signal)));

const walk = (visitor: Partial<Visitor>, bounds?: Partial<WalkBounds>, own = signal): Promise<boolean> =>
  OpenDir.using(
    root,
    async (dir) => walkTree(dir, await dir.stat(), { entry: () => undefined, ...visitor }, own, bounds),
    atOnce,
  );
const held = (): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(root);
    } catch {
      return false; // closed meanwhile
    }
  }).length;

describe('a walk', () => {
  afterEach(() => assert.equal(held(), 0, 'nothing stays open'));

  it('shows every name once, a directory again after its content', async () => {
    for (const path of ['a/b/c', 'a/d', 'e']) mkdirSync(join(root, path), { recursive: true });
    for (const path of ['f', 'a/f', 'a/b/c/f']) writeFileSync(join(root, path), '');
    const order: string[] = [];
    const left = new Set<number>();
    const entry: Visitor['entry'] = (_dir, name, { ino }) => {
      assert.ok(!left.has(ino));
      order.push(showName(name));
    };
    const leave = async (dir: OpenDir, { ino }: { ino: number }): Promise<void> => {
      assert.equal((await dir.stat()).ino, ino);
      left.add(ino);
    };
    for (const bounds of [{}, { held: 1 }]) {
      left.clear();
      assert.equal(await walk({ entry, leave }, bounds), true);
      assert.deepEqual([order.splice(0).sort().join(' '), left.size], ['a b c d e f f f', 6]);
    }
  });

  it('goes thousands of levels down with a bounded number of descriptors', async () => {
    let dir = await OpenDir.open(root, atOnce);
    for (let i = 0; i < 2_000; i++) {
      const next = await dir.mkdir('d', 0o700);
      dir.closeNow();
      dir = next;
    }
    dir.closeNow();
    let [entries, left, most] = [0, 0, 0];
    const look = (): void => void (most = Math.max(most, held()));
    const leave = (): void => {
      if (left++ % 100 === 0) look();
    };
    const entry = (): void => {
      if (entries++ % 100 === 0) look();
    };
    assert.equal(await walk({ entry, leave }), true);
    assert.deepEqual([entries, left], [2_000, 2_001]);
    assert.ok(most > 60 && most < 70, `${most}`);
    await assert.rejects(walk({}, { levels: 1_900 }), { kind: 'exhausted', message: /too deep/ });
  });

  it('reads large directories inside each other with a bounded number of descriptors', async () => {
    let path = root;
    for (let level = 0; level < 4; level++) {
      for (let i = 0; i < 1_100; i++) writeFileSync(join(path, `${'n'.repeat(240)}${i}`), '');
      path = join(path, 'd');
      mkdirSync(path);
    }
    let [entries, most] = [0, 0];
    const leave = (): void => void (most = Math.max(most, held()));
    assert.equal(await walk({ entry: () => void entries++, leave }, { held: 2 }), true);
    assert.equal(entries, 4 * 1_101);
    assert.ok(most <= 8, `${most}`);
  });

  it('ends where a directory was moved while it was in it', async () => {
    mkdirSync(join(root, 'a/b/c/d'), { recursive: true });
    mkdirSync(join(root, 'other'));
    const entry: Visitor['entry'] = (_dir, name) => {
      if (name === 'd') renameSync(join(root, 'a/b/c'), join(root, 'other/c'));
    };
    await assert.rejects(walk({ entry }, { held: 1 }), { kind: 'conflict', message: /was moved/ });
  });

  it('holds a bounded number of names, and looks at its signal', async () => {
    for (let i = 0; i < 20; i++) mkdirSync(join(root, `${i}`));
    await assert.rejects(walk({}, { names: 10 }), { kind: 'exhausted', message: /beside each other/ });
    const stop = new AbortController();
    let entries = 0;
    const entry = (): void => {
      if (++entries === 5) stop.abort(new Error('no longer wanted'));
    };
    await assert.rejects(walk({ entry }, {}, stop.signal), /no longer wanted/);
    assert.equal(entries, 5);
  });
});
