import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { limitsSwap } from './swap-limits.ts';

for (const [what, version, files, expected] of [
  ['v2, the kubelet in a slice', 2, ['sys/fs/cgroup/system.slice/kubelet.service/memory.swap.max'], true],
  ['v2, swap is not accounted for', 2, ['sys/fs/cgroup/system.slice/kubelet.service/memory.max'], false],
  ['v1 with swap accounting', 1, ['sys/fs/cgroup/memory/memory.memsw.limit_in_bytes'], true],
  ['v1 without', 1, ['sys/fs/cgroup/memory/memory.limit_in_bytes'], false],
] as const)
  test(`swap of single cgroups: ${what}`, async (t) => {
    const root = await mkdtemp(join(tmpdir(), 'swap-limits-'));
    t.after(() => rm(root, { recursive: true }));
    for (const path of ['proc/self/cgroup', ...files]) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), '0::/system.slice/kubelet.service\n');
    }
    assert.equal(await limitsSwap(version, root), expected);
  });
