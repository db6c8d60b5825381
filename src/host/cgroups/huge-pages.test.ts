import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ManualClock } from '../../lib/manual-clock.ts';
import { CgroupV1 } from './cgroup-v1.ts';
import { CgroupV2 } from './cgroup-v2.ts';

const clock = new ManualClock();
const never = new AbortController().signal;
const hugePages = new Map([
  [2 ** 21, 2 ** 23],
  [2 ** 30, 0],
]);

for (const [version, suffix, open] of [
  [1, 'limit_in_bytes', (mountPoint: string) => new CgroupV1(clock, [{ controllers: ['hugetlb'], mountPoint }])],
  [2, 'max', (mountPoint: string) => new CgroupV2(clock, mountPoint)],
] as const)
  test(`limits of huge pages in use and reserved, on a kernel that has the latter (cgroup v${version})`, async (t) => {
    const root = await mkdtemp(join(tmpdir(), 'huge-pages-'));
    t.after(() => rm(root, { recursive: true }));
    await mkdir(join(root, 'pod'));
    const [used, reserved] = [`hugetlb.2MB.${suffix}`, `hugetlb.2MB.rsvd.${suffix}`];
    await writeFile(join(root, 'pod', 'cgroup.controllers'), 'hugetlb\n');
    for (const file of [used, reserved]) await writeFile(join(root, 'pod', file), '');
    await open(root).update('/pod', { hugePages }, never);
    assert.deepEqual((await readdir(join(root, 'pod'))).sort(), [
      'cgroup.controllers',
      `hugetlb.1GB.${suffix}`,
      used,
      reserved,
    ]);
    for (const file of [used, reserved]) assert.equal(await readFile(join(root, 'pod', file), 'utf8'), `${2 ** 23}`);
  });
