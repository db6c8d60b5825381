// What a pod can make of a path beneath a volume: long ones and chains of links end with an error, deep ones are found with
// a bounded number of descriptors.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { findBeneath, makeBeneath } from './beneath.ts';
import { OpenDir } from './open-dir.ts';
import { removeTree } from './remove-tree.ts';

const { signal } = new AbortController();
let root: string;
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), 'beneath-'))));
afterEach(() => OpenDir.using(tmpdir(), (dir) => removeTree(dir, root.slice(tmpdir().length + 1), signal)));

const held = (): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(root);
    } catch {
      return false; // closed meanwhile
    }
  }).length;

describe('a path beneath a volume', () => {
  afterEach(() => assert.equal(held(), 0, 'nothing stays open'));

  it('may be as long as the kernel takes, and holds a bounded number of directories', async () => {
    await (await makeBeneath(root, 'a/'.repeat(2_047))).close();
    writeFileSync(join(root, 'file'), 'found');
    symlinkSync(`${'../'.repeat(200)}file`, join(root, 'a/'.repeat(200), 'back'));
    const walking = findBeneath(root, `${'a/'.repeat(200)}back`);
    let most = 0;
    let isOver = false;
    const watching = (async () => {
      while (!isOver) {
        most = Math.max(most, held());
        await new Promise((resolve) => void setImmediate(resolve));
      }
    })();
    const found = await walking.finally(() => (isOver = true));
    await watching;
    assert.equal(String(await found.read(10)), 'found');
    await found.close();
    assert.ok(most > 60 && most < 70, `${most}`);
  });

  it('is refused when it is longer, before anything is made', async () => {
    for (const path of ['a/'.repeat(2_049), 'é'.repeat(2_049), 'a/'.repeat(700_000)])
      await assert.rejects(makeBeneath(root, path), { kind: 'invalid', message: /longer than 4095 bytes/ });
    assert.deepEqual(readdirSync(root), []);
  });

  it('is refused when links make it longer', async () => {
    mkdirSync(join(root, 'd'));
    symlinkSync(`${'d/../'.repeat(700)}last`, join(root, 'link'));
    symlinkSync(`${'d/../'.repeat(300)}link/${'d/../'.repeat(300)}link`, join(root, 'last'));
    await assert.rejects(findBeneath(root, 'link'), { kind: 'invalid', message: /links make more than 2048 elements/ });
  });
});
