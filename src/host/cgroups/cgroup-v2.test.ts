import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ManualClock } from '../../lib/manual-clock.ts';
import { CgroupV2 } from './cgroup-v2.ts';

test('a cgroup is there when it has the controllers of the root, which are read again before it counts as missing', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'cgroup-v2-'));
  t.after(() => rm(root, { recursive: true }));
  const clock = new ManualClock();
  const cgroups = new CgroupV2(clock, root);
  const never = new AbortController().signal;
  const controllers = (dir: string, names: string): Promise<void> =>
    writeFile(join(root, dir, 'cgroup.controllers'), `${names}\n`);
  const exists = (): Promise<boolean> => cgroups.exists('/pod', never);
  await controllers('.', 'cpu memory pids misc');
  assert.equal(await exists(), false, 'no directory');
  await mkdir(join(root, 'pod'));
  await controllers('pod', 'cpu memory');
  assert.equal(await exists(), false, 'pids are missing');
  await controllers('pod', 'cpu memory pids');
  assert.equal(await exists(), true, 'misc is nothing a pod needs');
  assert.equal(await exists(), true, 'the same ones again');
  await rm(join(root, 'pod'), { recursive: true });
  assert.equal(await exists(), false, 'the directory is gone');
  await mkdir(join(root, 'pod'));
  await controllers('pod', 'cpu memory');
  await controllers('.', 'cpu memory');
  assert.equal(await exists(), true, 'the root lost the controller, too');
  await controllers('.', 'cpu memory hugetlb');
  await clock.advance(60_000);
  assert.equal(await exists(), false, 'the root has one more since');
  assert.equal(await exists(), false, 'and still has it');
  await controllers('pod', 'hugetlb cpu memory');
  assert.equal(await exists(), true, 'the pod has it, too');
});
