// Containers make cgroups below their own, by any name: they are found, counted and removed. Directories stand for cgroups.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, it } from 'node:test';
import { ManualClock } from '../../lib/manual-clock.ts';
import { childDirs, pidsBelow, removeCgroup } from './remove-tree.ts';

const { signal } = new AbortController();
let root = '';
let dir = '';
const odd = (...below: string[]): Buffer =>
  Buffer.concat([Buffer.from(`${dir}/caf`), Buffer.from([0xe9]), ...below.map((name) => Buffer.from(`/${name}`))]);
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cgroup-'));
  dir = join(root, 'pod');
  mkdirSync(join(dir, 'plain'), { recursive: true });
  mkdirSync(odd('below'), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

it('a cgroup with a name that is not UTF-8 is removed', async () => {
  const kill = (): Promise<never> => assert.fail('nothing holds it');
  await removeCgroup({ clock: new ManualClock(), dirs: [dir], kill }, signal);
  assert.ok(!existsSync(dir));
});

it('its processes are found, its name is none of a pod or container', async () => {
  writeFileSync(join(dir, 'plain', 'cgroup.procs'), '11\n12\n');
  writeFileSync(odd('below', 'cgroup.procs'), '13\n');
  assert.deepEqual(
    (await pidsBelow(dir)).toSorted((a, b) => a - b),
    [11, 12, 13],
  );
  assert.deepEqual(await childDirs(dir), ['plain']);
});
