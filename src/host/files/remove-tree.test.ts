// What removal promises of trees that a pod made as awkward as it could: all is gone, or an error says what is left.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { EntryName } from './entry-name.ts';
import { atOnce, onThreads, type FileCalls } from './file-calls.ts';
import { OpenDir } from './open-dir.ts';
import { removeTree } from './remove-tree.ts';

const { signal } = new AbortController();
let root: string;
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), 'remove-'))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const remove = (calls: FileCalls = onThreads, own = signal): Promise<void> =>
  OpenDir.using(root, (dir) => removeTree(dir, 'tree', own), calls);
const errno = (code: string): Error => Object.assign(new Error(code), { code });
const bytesAt = (...bytes: number[]): Buffer =>
  Buffer.concat([Buffer.from(join(root, 'tree', 'x')), Buffer.from(bytes)]);
const most = (): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(root);
    } catch {
      return false; // closed meanwhile
    }
  }).length;

async function makeDeep(levels: number): Promise<void> {
  let dir = await OpenDir.open(join(root, 'tree'), atOnce);
  for (let i = 0; i < levels; i++) {
    const next = await dir.mkdir('d', 0o700);
    dir.closeNow();
    dir = next;
  }
  dir.closeNow();
}

describe('removing a tree', () => {
  beforeEach(() => mkdirSync(join(root, 'tree')));

  it('takes names of any bytes', async () => {
    for (const byte of Array(256).keys()) if (byte !== 0 && byte !== 0x2f) writeFileSync(bytesAt(byte), '');
    mkdirSync(bytesAt(0xe9, 0xe9));
    writeFileSync(Buffer.concat([bytesAt(0xe9, 0xe9), Buffer.from([0x2f, 0xff])]), '');
    assert.equal(readdirSync(join(root, 'tree')).length, 255);
    await remove();
    assert.ok(!existsSync(join(root, 'tree')));
  });

  it('takes a large directory of such names', async () => {
    for (let i = 0; i < 1500; i++)
      writeFileSync(Buffer.concat([bytesAt(), Buffer.from('n'.repeat(240) + i), Buffer.from([0xe9])]), '');
    await remove();
    assert.ok(!existsSync(join(root, 'tree')));
  });

  it('takes ten thousand levels, with a bounded number of descriptors', async () => {
    await makeDeep(10_000);
    let [held, calls] = [0, 0];
    const rmdir = (path: string | Buffer): void | Promise<void> => {
      if (calls++ % 500 === 0) held = Math.max(held, most());
      return onThreads.rmdir(path);
    };
    await remove({ ...onThreads, rmdir });
    assert.ok(!existsSync(join(root, 'tree')));
    assert.ok(held > 10 && held < 110, `${held}`);
  });

  it('finds room for what it moves up among names that are taken', async () => {
    await makeDeep(200);
    for (let i = 0; i < 5; i++) mkdirSync(join(root, 'tree', `..removing.${i}`, 'full'), { recursive: true });
    await remove();
    assert.deepEqual(readdirSync(root), []);
  });

  it('leaves what is immutable, says so, and removes the rest', async (t) => {
    mkdirSync(join(root, 'tree', 'a'));
    const files = ['a/1', 'a/2', '3', '4'].map((name) => join(root, 'tree', name));
    for (const file of files) writeFileSync(file, '');
    try {
      execFileSync('chattr', ['+i', join(root, 'tree', 'a/1')], { stdio: 'pipe' });
    } catch (err) {
      return t.skip(`this file system has no immutable files: ${String(err)}`);
    }
    try {
      await assert.rejects(remove(), { code: 'EPERM' });
      assert.deepEqual(readdirSync(join(root, 'tree'), { recursive: true }), ['a', 'a/1']);
    } finally {
      execFileSync('chattr', ['-i', join(root, 'tree', 'a/1')]);
    }
    await remove();
    assert.deepEqual(readdirSync(root), []);
  });

  for (const [size, count] of [
    ['usual', 5],
    ['large', 1500],
  ] as const)
    it(`ends with an error where names of a directory of ${size} size are listed and not found`, async () => {
      for (let i = 0; i < count; i++) writeFileSync(join(root, 'tree', `${'n'.repeat(240)}${i}`), '');
      let calls = 0;
      const unlink = (): Promise<void> => (calls++, Promise.reject(errno('ENOENT')));
      await assert.rejects(remove({ ...onThreads, unlink }), { kind: 'conflict', message: /listed but not found/ });
      assert.equal(calls, count, 'each is tried once');
    });

  it('ends with an error where something goes on to write', async () => {
    mkdirSync(join(root, 'tree', 'd'));
    writeFileSync(join(root, 'tree', 'd', 'f'), '');
    let calls = 0;
    const unlink = async (path: EntryName): Promise<void> => {
      await onThreads.unlink(path);
      if (calls++ < 10_000) writeFileSync(join(root, 'tree', 'd', `${calls}`), '');
    };
    await assert.rejects(remove({ ...onThreads, unlink }), {
      kind: 'conflict',
      message: /something else writes to it/,
    });
    assert.ok(calls < 1_000, `${calls}`);
  });

  it('ends with its signal', async () => {
    for (let i = 0; i < 50; i++) writeFileSync(join(root, 'tree', `${i}`), '');
    const stop = new AbortController();
    let calls = 0;
    const unlink = (path: EntryName): void | Promise<void> => {
      if (++calls === 10) stop.abort(new Error('no longer wanted'));
      return onThreads.unlink(path);
    };
    await assert.rejects(remove({ ...onThreads, unlink }, stop.signal), /no longer wanted/);
    assert.ok(calls < 14, `${calls}`);
    await assert.rejects(remove(onThreads, stop.signal), /no longer wanted/);
  });
});
