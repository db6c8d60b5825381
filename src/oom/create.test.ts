import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryEventsPath } from './create.ts';

const v1 = { version: 1, hierarchies: [] } as const;
const v2 = { version: 2, mountPoint: '/sys/fs/cgroup' } as const;

describe('where the kernel counts kills of pods', () => {
  for (const [name, layout, root, driver, path] of [
    ['nowhere on cgroup v1', v1, '/', 'cgroupfs', undefined],
    ['cgroupfs', v2, '', 'cgroupfs', '/sys/fs/cgroup/kubepods/memory.events'],
    ['systemd', v2, '/', 'systemd', '/sys/fs/cgroup/kubepods.slice/memory.events'],
    ['below a slice', v2, '/my-own', 'systemd', '/sys/fs/cgroup/my_own.slice/my_own-kubepods.slice/memory.events'],
    ['below a root of its own', v2, '/mine', 'cgroupfs', '/sys/fs/cgroup/mine/kubepods/memory.events'],
  ] as const)
    it(name, () => assert.equal(memoryEventsPath(layout, root, driver), path));
});
