import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCgroupMounts } from './layout.ts';

test('v1 with a unified tree beside it counts as v1', () => {
  const layout = parseCgroupMounts(
    [
      '30 24 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct',
      '31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory',
      '32 24 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd',
      '33 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw',
      '34 24 0:26 / /other/cpu rw - cgroup cgroup rw,cpu,cpuacct',
      '35 24 0:30 / / rw - ext4 /dev/vda rw',
    ].join('\n'),
  );
  assert.deepEqual(layout, {
    version: 1,
    hierarchies: [
      { mountPoint: '/sys/fs/cgroup/cpu,cpuacct', controllers: ['cpu', 'cpuacct'] },
      { mountPoint: '/sys/fs/cgroup/memory', controllers: ['memory'] },
      { mountPoint: '/sys/fs/cgroup/systemd', controllers: ['systemd'] },
    ],
    unified: '/sys/fs/cgroup/unified',
  });
});

test('v2', () => {
  assert.deepEqual(parseCgroupMounts('33 24 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate'), {
    version: 2,
    mountPoint: '/sys/fs/cgroup',
  });
});

test('a machine without cgroups is no place for pods', () => {
  assert.throws(() => parseCgroupMounts('35 24 0:30 / / rw - ext4 /dev/vda rw'), /no cgroup hierarchy/);
});
