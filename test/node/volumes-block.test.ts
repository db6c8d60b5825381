// Loop devices, file systems on devices and device maps on this kernel.
// runs: gate
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { deviceBytes, deviceNumber } from '../../src/host/block/device-facts.ts';
import { Disks } from '../../src/host/block/disk.ts';
import { LoopDevices } from '../../src/host/block/loop-devices.ts';
import { ChildMounts } from '../../src/host/mounts/child-mounts.ts';
import { ChildCommands } from '../../src/host/mounts/commands.ts';
import { HostMounter } from '../../src/host/mounts/mounter.ts';
import { readMountTable } from '../../src/host/mounts/mount-table.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { DeviceMap } from '../../src/volumes/block/device-map.ts';
import { VolumeLayout } from '../../src/volumes/layout.ts';
import { PodDirs } from '../../src/volumes/pod-dirs.ts';
import { Bench } from './volumes-setup.ts';

const noLoops = existsSync('/dev/loop-control') ? false : 'this machine has no loop devices';
const commands = new ChildCommands({ clock: systemClock });
const loops = new LoopDevices({ commands });
const mounter = new HostMounter({ clock: systemClock });

let bench: Bench;
let made: string[];
beforeEach(() => {
  bench = new Bench();
  made = [];
});
afterEach(async () => {
  assert.deepEqual(bench.dispose(), [], 'nothing is left mounted');
  for (const device of made) execFileSync('losetup', ['-d', device]);
  assert.deepEqual(attachedBeneath(bench.root), [], 'no loop device is left');
});

const attachedBeneath = (root: string): string[] =>
  execFileSync('losetup', ['-a', '-O', 'BACK-FILE', '-n'], { encoding: 'utf8' })
    .split('\n')
    .filter((file) => file.startsWith(`${root}/`));

/** A disk of this size: a loop device over a sparse file. */
function disk(name: string, bytes: number): string {
  const file = join(bench.root, name);
  writeFileSync(file, '');
  truncateSync(file, bytes);
  const device = execFileSync('losetup', ['-f', '--show', file], { encoding: 'utf8' }).trim();
  made.push(device);
  return device;
}

test('a file gets one loop device, found by its path through links, released once', { skip: noLoops }, async () => {
  mkdirSync(join(bench.root, 'real'));
  symlinkSync('real', join(bench.root, 'link'));
  const file = join(bench.root, 'link', 'file');
  writeFileSync(file, '');
  truncateSync(file, 1 << 20);
  assert.deepEqual(await loops.find(file), []);
  const device = await loops.attach(file, bench.signal);
  assert.equal(await loops.attach(file, bench.signal), device);
  assert.deepEqual(await loops.find(join(bench.root, 'real/file')), [device]);
  assert.equal(await deviceBytes((await deviceNumber(device)) ?? ''), 1 << 20);
  await loops.detach(file, bench.signal);
  await loops.detach(file, bench.signal);
  assert.deepEqual(await loops.find(file), []);
  await assert.rejects(
    loops.attach(join(bench.root, 'missing'), bench.signal),
    /^KubeletError: losetup -f .*missing failed/,
  );
});

test('an empty disk is formatted and mounted, an old one keeps its files', { skip: noLoops }, async () => {
  const device = disk('disk', 16 << 20);
  const target = join(bench.root, 'mnt');
  mkdirSync(target);
  const disks = new Disks({ commands, patient: commands });
  assert.deepEqual(await disks.contentOf(device, bench.signal), { is: 'empty' });
  const request = { device, target, fsType: '', options: [] };
  await disks.formatAndMount(request, bench.signal);
  writeFileSync(join(target, 'data'), 'kept');
  await mounter.unmount(target, {}, bench.signal);
  await disks.formatAndMount({ ...request, options: ['noatime'] }, bench.signal);
  assert.ok(existsSync(join(target, 'data')));
  assert.ok((await readMountTable()).at(target)?.options.split(',').includes('noatime'));
  await mounter.unmount(target, {}, bench.signal);
  const wrong = disks.formatAndMount({ ...request, fsType: 'xfs' }, bench.signal);
  await assert.rejects(wrong, (err: { detail: Record<string, unknown> }) => err.detail['filesystemMismatch'] === true);
});

/** Bit 24 of the effective capabilities: growing a mounted ext4 needs it, and root in a container may lack it. */
const mayGrow =
  (BigInt(`0x${/CapEff:\t(\w+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'}`) & (1n << 24n)) !== 0n;

test(
  'a file system grows with its device while it is mounted',
  { skip: noLoops || (mayGrow ? false : 'root lacks CAP_SYS_RESOURCE here') },
  async () => {
    const device = disk('disk', 16 << 20);
    const target = join(bench.root, 'mnt');
    mkdirSync(target);
    const disks = new Disks({ commands, patient: commands });
    await disks.formatAndMount({ device, target, fsType: '', options: [] }, bench.signal);
    const before = capacityOf(target);
    truncateSync(join(bench.root, 'disk'), 64 << 20);
    execFileSync('losetup', ['-c', device]);
    await disks.grow(device, target, bench.signal);
    assert.ok(capacityOf(target) > before * 2, 'the file system uses the new space');
    await mounter.unmount(target, {}, bench.signal);
  },
);

const capacityOf = (path: string): number =>
  Number(execFileSync('stat', ['-f', '-c', '%b', path], { encoding: 'utf8' }).trim());

test('a bind gets its options, also when it was cut off before them', async () => {
  const [source, target] = [join(bench.root, 'source'), join(bench.root, 'target')];
  mkdirSync(source);
  mkdirSync(target);
  const mounts = new ChildMounts({ commands, mounter });
  await mounts.bind(source, target, [], bench.signal);
  writeFileSync(join(target, 'writable'), '');
  await mounts.bind(source, target, ['ro', 'noexec'], bench.signal);
  const table = await readMountTable();
  assert.equal(table.depthAt(target), 1);
  const options = table.at(target)?.options.split(',') ?? [];
  assert.ok(options.includes('ro') && options.includes('noexec'));
  assert.throws(() => writeFileSync(join(target, 'refused'), ''), { code: 'EROFS' });
  await assert.rejects(mounts.bind(join(bench.root, 'nowhere'), join(bench.root, 'source'), [], bench.signal), {
    kind: 'unavailable',
    message: new RegExp(
      `^mount failed: exit status 32\nMounting command: mount\nMounting arguments: -o bind .*nowhere`,
    ),
  });
  await mounter.unmount(target, {}, bench.signal);
});

test(
  'a device map has a bind, a loop device and a link; it is repaired, moved and removed',
  { skip: noLoops },
  async () => {
    const [first, second] = [disk('a', 1 << 20), disk('b', 2 << 20)];
    const layout = new VolumeLayout(bench.root);
    const map = new DeviceMap({ layout, mounter, loops });
    const globalMapDir = join(layout.sharedPluginDir('kubernetes.io/csi'), 'volumeDevices/pv/dev');
    const place = { globalMapDir, uid: 'uid-1', plugin: 'kubernetes.io/csi', specName: 'pv' };
    const link = await map.map(place, first, bench.signal);
    assert.equal(link, join(bench.root, 'pods/uid-1/volumeDevices/kubernetes.io~csi/pv'));
    assert.equal(readlinkSync(link), first);
    const bind = join(globalMapDir, 'uid-1');
    assert.equal(await deviceNumber(bind), await deviceNumber(first));
    assert.deepEqual(attachedBeneath(globalMapDir), [bind]);
    await map.map(place, first, bench.signal);
    assert.equal((await readMountTable()).depthAt(bind), 1);
    assert.equal((await loops.find(bind)).length, 1);
    await map.map({ ...place, uid: 'uid-2' }, first, bench.signal);
    await assert.rejects(map.removeGlobalMap(globalMapDir), {
      kind: 'conflict',
      message: `the device "${globalMapDir}" is still referenced from other Pods [uid-1 uid-2]`,
    });
    await map.map(place, second, bench.signal);
    assert.equal(readlinkSync(link), second);
    assert.equal(await deviceNumber(bind), await deviceNumber(second), 'the driver came back with another device');
    const podDirs = new PodDirs(layout, mounter);
    await assert.rejects(podDirs.removeOrphan('uid-1', bench.signal), {
      kind: 'conflict',
      message: /still has the block volume kubernetes.io~csi\/pv$/,
    });
    await map.unmap(place, bench.signal);
    await podDirs.removeOrphan('uid-1', bench.signal);
    assert.throws(() => lstatSync(link), { code: 'ENOENT' });
    assert.deepEqual(await map.users(globalMapDir), ['uid-2']);
    await map.unmap({ ...place, uid: 'uid-2' }, bench.signal);
    await map.unmap({ ...place, uid: 'uid-2' }, bench.signal);
    await map.removeGlobalMap(globalMapDir);
    await map.removeGlobalMap(globalMapDir);
    assert.ok(!existsSync(globalMapDir));
    await assert.rejects(map.map(place, join(bench.root, 'a'), bench.signal), /is not a block device$/);
  },
);
