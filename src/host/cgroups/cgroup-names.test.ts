import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../../core/ids.ts';
import { cgroupPath, parseCgroupName, parseCgroupRoot, podName, podUidOfDir } from './cgroup-names.ts';

const UID = podUid('c5cfdf98-8677-4423-ba65-a7e5a2449ec7');

test('paths of both drivers', () => {
  assert.equal(cgroupPath(podName([], 'Burstable', UID), 'cgroupfs'), `/kubepods/burstable/pod${UID}`);
  assert.equal(cgroupPath(podName([], 'Guaranteed', UID), 'cgroupfs'), `/kubepods/pod${UID}`);
  assert.equal(
    cgroupPath(podName([], 'BestEffort', UID), 'systemd'),
    '/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podc5cfdf98_8677_4423_ba65_a7e5a2449ec7.slice',
  );
  assert.equal(
    cgroupPath(podName(parseCgroupName('/my-root', 'cgroupfs'), 'Burstable', UID), 'systemd'),
    '/my_root.slice/my_root-kubepods.slice/my_root-kubepods-burstable.slice/my_root-kubepods-burstable-podc5cfdf98_8677_4423_ba65_a7e5a2449ec7.slice',
  );
});

test('names are read back', () => {
  assert.deepEqual(parseCgroupName('/', 'cgroupfs'), []);
  assert.deepEqual(parseCgroupName('/a/b', 'cgroupfs'), ['a', 'b']);
  assert.deepEqual(parseCgroupName('/', 'systemd'), []);
  assert.deepEqual(parseCgroupName('/system.slice/system-x_y.slice', 'systemd'), ['system', 'x-y']);
});

test('the root of all pods is a path of plain names, or a slice', () => {
  for (const [text, driver, path] of [
    ['/', 'systemd', '/'],
    ['', 'systemd', '/'],
    ['/a-b', 'cgroupfs', '/a-b'],
    ['/a-b', 'systemd', '/a_b.slice'],
    ['/a/b-c', 'systemd', '/a.slice/a-b_c.slice'],
    ['/a.slice/a-b.slice', 'systemd', '/a.slice/a-b.slice'],
    ['/a.slice', 'cgroupfs', '/a.slice'],
  ] as const)
    assert.equal(cgroupPath(parseCgroupRoot(text, driver), driver), path, `${driver} ${text}`);
});

test('whose cgroup a directory is', () => {
  assert.equal(podUidOfDir(`pod${UID}`, 'cgroupfs'), UID);
  assert.equal(podUidOfDir('burstable', 'cgroupfs'), undefined);
  const slice = 'kubepods-burstable-podc5cfdf98_8677_4423_ba65_a7e5a2449ec7.slice';
  assert.equal(podUidOfDir(slice, 'systemd'), UID);
  assert.equal(podUidOfDir('kubepods-burstable.slice', 'systemd'), undefined);
  assert.equal(podUidOfDir('cri-containerd-abc.scope', 'systemd'), undefined);
});
