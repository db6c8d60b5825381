import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CgroupStatisticsReader } from './statistics-reader.ts';

const { signal } = new AbortController();

test('processes of a container are in its cgroup, or below it', async (t) => {
  const mountPoint = mkdtempSync('/tmp/kts-statistics-');
  t.after(() => rmSync(mountPoint, { recursive: true }));
  for (const [path, pids] of [
    ['pod.slice', []],
    ['pod.slice/cri-containerd-1.scope', [11, 12]],
    ['pod.slice/cri-containerd-1.scope/of-its-own', [13]],
    ['pod.slice/crio-2.scope', []],
    ['pod.slice/crio-2.scope/container', [21, 22]],
    ['pod.slice/crio-3.scope/container/init.scope', [31]],
    ['pod.slice/crio-3.scope/container/system.slice', [32]],
  ] as const) {
    mkdirSync(join(mountPoint, path), { recursive: true });
    writeFileSync(join(mountPoint, path, 'cgroup.procs'), pids.map((pid) => `${pid}\n`).join(''));
  }
  const reader = new CgroupStatisticsReader({ version: 2, mountPoint });
  const found = (scope: string): Promise<readonly number[]> => reader.procsOfContainer(`/pod.slice/${scope}`, signal);
  assert.deepEqual(await found('cri-containerd-1.scope'), [11, 12]);
  assert.deepEqual(await found('crio-2.scope'), [21, 22]);
  assert.deepEqual(await found('crio-3.scope'), [31, 32]);
  assert.deepEqual(await found('gone.scope'), []);
  assert.deepEqual(await reader.procs('/pod.slice', signal), []);
});
