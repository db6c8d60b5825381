import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { checkCgroupRoot } from './cgroup-root.ts';

const dir = mkdtempSync(join(tmpdir(), 'cgroup-root-'));
after(() => rmSync(dir, { recursive: true }));

const unified = `30 1 0:26 / ${dir}/v2 rw - cgroup2 cgroup rw\n`;
const split = ['cpu', 'memory'].map((c) => `31 1 0:27 / ${dir}/v1/${c} rw - cgroup cgroup rw,${c}\n`).join('');
const made = [
  'v2/here',
  'v2/a.slice/a-b.slice',
  'v2/a_b.slice',
  'v2/c.slice/c-d.slice',
  'v1/memory/here',
  'v1/cpu/here',
];
for (const path of made) mkdirSync(join(dir, path), { recursive: true });

for (const [root, mounts, exists] of [
  ['', unified, true],
  ['/', unified, true],
  ['-.slice', unified, true],
  ['/here', unified, true],
  ['here', unified, true],
  ['/nowhere', unified, false],
  ['/here/nowhere', unified, false],
  ['/here', split, true],
  ['/nowhere', split, false],
  ['a-b.slice', unified, true],
  ['/a.slice/a-b.slice', unified, true],
  ['a-c.slice', unified, false],
  ['/a-b', unified, true],
  ['/c/d', unified, true],
  ['/c-d', unified, false],
  ['/nowhere', '', true],
] as const)
  test(`${root || 'no root'} on ${mounts === unified ? 'v2' : mounts === split ? 'v1' : 'a machine without cgroups'}`, () => {
    const mountinfo = join(dir, 'mountinfo');
    writeFileSync(mountinfo, mounts);
    if (exists) checkCgroupRoot(root, mountinfo);
    else assert.throws(() => checkCgroupRoot(root, mountinfo), { message: `cgroup-root "${root}" doesn't exist` });
  });
