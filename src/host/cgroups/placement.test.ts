import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { Placement } from './placement.ts';

const root = mkdtempSync(join(tmpdir(), 'placement-'));
after(() => rmSync(root, { recursive: true }));
const signal = new AbortController().signal;

function hierarchy(name: string, pids: string): string {
  const mountPoint = join(root, name);
  mkdirSync(mountPoint);
  writeFileSync(join(mountPoint, 'cgroup.procs'), pids);
  writeFileSync(join(mountPoint, 'cgroup.controllers'), '');
  writeFileSync(join(mountPoint, 'cgroup.subtree_control'), '');
  return mountPoint;
}
const proc = join(root, 'proc');
for (const pid of ['1', '5', '6']) mkdirSync(join(proc, pid), { recursive: true });
for (const pid of ['1', '5']) symlinkSync('/bin/true', join(proc, pid, 'exe'));

it('on cgroup v2 a process is put into the one tree', async () => {
  const mountPoint = hierarchy('unified', '1\n5\n6\n');
  const placement = new Placement(systemClock, { version: 2, mountPoint }, proc);
  await placement.place('/kubelet.slice', [5], signal);
  assert.equal(readFileSync(join(mountPoint, 'kubelet.slice', 'cgroup.procs'), 'utf8'), '5');
  assert.deepEqual(await placement.unplaced(), [5], 'neither the first process nor one of the kernel');
});

it('on cgroup v1 into every hierarchy', async () => {
  const hierarchies = ['memory', 'devices'].map((name) => ({
    mountPoint: hierarchy(name, name === 'devices' ? '5\n' : '1\n'),
    controllers: [name],
  }));
  const placement = new Placement(systemClock, { version: 1, hierarchies }, proc);
  await placement.place('/kubelet', [5], signal);
  for (const { mountPoint } of hierarchies)
    assert.equal(readFileSync(join(mountPoint, 'kubelet', 'cgroup.procs'), 'utf8'), '5');
  assert.deepEqual(await placement.unplaced(), [5]);
});
