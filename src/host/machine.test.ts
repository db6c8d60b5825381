import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { readMachine } from './machine.ts';

test('facts are read from /proc and /sys', async () => {
  const root = await mkdtemp(join(tmpdir(), 'machine-'));
  const files: Record<string, string> = {
    'proc/meminfo': 'MemTotal:       24682416 kB\nMemFree: 1 kB\nSwapTotal:  1024 kB\n',
    'proc/swaps': 'Filename Type Size Used Priority\n/swap file 1024 0 -2\n',
    'proc/sys/kernel/pid_max': '32768\n',
    'proc/sys/kernel/threads-max': '15000\n',
    'proc/sys/kernel/osrelease': '6.1.0-9-amd64\n',
    'sys/devices/system/cpu/online': '0-1,4\n',
    'sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages': '0\n',
    'sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages': '7\n',
  };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  assert.deepEqual(await readMachine(root), {
    cpus: 3,
    memoryBytes: 24682416 * 1024,
    hugePages: [
      { sizeBytes: 2 ** 21, pages: 7 },
      { sizeBytes: 2 ** 30, pages: 0 },
    ],
    swapBytes: 1024 * 1024,
    swapOn: true,
    maxPids: 15000,
    kernelRelease: '6.1.0-9-amd64',
  });
  await rm(root, { recursive: true });
});

test('this machine has processors and memory', async () => {
  const facts = await readMachine();
  assert.ok(facts.cpus > 0 && facts.memoryBytes > 0 && facts.maxPids > 0);
});
