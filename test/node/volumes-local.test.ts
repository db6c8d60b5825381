// Local persistent volumes on this kernel: directories and disks, shared by pods, as file systems and as devices.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { Pod } from '../../src/core/pod.ts';
import type { PersistentVolume } from '../../src/core/storage.ts';
import { Disks } from '../../src/host/block/disk.ts';
import { LoopDevices } from '../../src/host/block/loop-devices.ts';
import { ChildMounts } from '../../src/host/mounts/child-mounts.ts';
import { ChildCommands, type HostCommands } from '../../src/host/mounts/commands.ts';
import { SafeHostFiles } from '../../src/host/mounts/host-files.ts';
import { HostMounter } from '../../src/host/mounts/mounter.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { DeviceMap } from '../../src/volumes/block/device-map.ts';
import { FilesystemStats } from '../../src/volumes/filesystem-stats.ts';
import { GroupOwner } from '../../src/volumes/group-owner.ts';
import { VolumeLayout } from '../../src/volumes/layout.ts';
import type { VolumeRequest } from '../../src/volumes/plugin.ts';
import { LocalPlugin } from '../../src/volumes/plugins/local.ts';
import { PodBinds } from '../../src/volumes/pod-binds.ts';
import { Bench, mountsBeneath, podNamed } from './volumes-setup.ts';

const noLoops = existsSync('/dev/loop-control') ? false : 'this machine has no loop devices';
const commands = new ChildCommands({ clock: systemClock });

let bench: Bench;
let layout: VolumeLayout;
let made: string[];
beforeEach(() => {
  bench = new Bench();
  layout = new VolumeLayout(bench.root);
  made = [];
});
afterEach(() => {
  const left = bench.dispose();
  for (const device of made) execFileSync('losetup', ['-d', device]);
  assert.deepEqual(left, [], 'nothing is left mounted');
  const loops = execFileSync('losetup', ['-a', '-O', 'BACK-FILE', '-n'], { encoding: 'utf8' });
  assert.ok(!loops.includes(bench.root), `no loop device is left: ${loops}`);
});

/** A new one knows nothing of what an earlier one did. */
function openPlugin(tools: HostCommands = commands): LocalPlugin {
  const mounter = new HostMounter({ clock: systemClock }, { rootDir: bench.root });
  const mounts = new ChildMounts({ commands, mounter });
  const { events } = bench.deps();
  const owner = new GroupOwner({ clock: systemClock, events });
  return new LocalPlugin({
    layout,
    mounter,
    files: new SafeHostFiles({ clock: systemClock, mounter }),
    disks: new Disks({ commands: tools, patient: tools }),
    deviceMap: new DeviceMap({ layout, mounter, loops: new LoopDevices({ commands }) }),
    binds: new PodBinds({ layout, mounter, mounts, owner, events }),
    stats: new FilesystemStats({ mounter, commands }),
    events,
  });
}

function disk(bytes: number): string {
  const file = join(bench.root, `disk-${made.length}`);
  writeFileSync(file, '');
  truncateSync(file, bytes);
  const device = execFileSync('losetup', ['-f', '--show', file], { encoding: 'utf8' }).trim();
  made.push(device);
  return device;
}

type Asked = Partial<Pick<VolumeRequest, 'readOnly' | 'volumeMode'>> & { mountOptions?: string[]; fsType?: string };

function requestOf(pod: Pod, path: string, asked: Asked = {}): VolumeRequest {
  const { readOnly = false, volumeMode = 'Filesystem', mountOptions = [], fsType } = asked;
  const volume: PersistentVolume = {
    metadata: { name: 'pv' },
    spec: { volumeMode, local: { path, ...(fsType === undefined ? {} : { fsType }) } },
  };
  mkdirSync(layout.volumesDir(pod.metadata.uid ?? ''), { recursive: true });
  return {
    pod,
    volume: { name: 'data', persistentVolumeClaim: { claimName: 'c' } },
    specName: 'pv',
    persistent: { volume, claim: { metadata: { name: 'c' } }, mountOptions, migrated: false },
    volumeMode,
    readOnly,
    inUse: false,
    attachedPath: '',
    progress: () => undefined,
  };
}

const podOf = (name: string, fsGroup?: number): Pod =>
  podNamed(name, fsGroup === undefined ? {} : { securityContext: { fsGroup } });
const onDisk = (pod: Pod, volumeMode: VolumeRequest['volumeMode'] = 'Filesystem') => ({
  uid: pod.metadata.uid ?? '',
  specName: 'pv',
  volumeMode,
});
const globalMount = (): string => join(bench.root, 'plugins/kubernetes.io/local-volume/mounts/pv');

test('a directory: two pods share it, one read-only; the second finds what the first wrote', async () => {
  const directory = join(bench.root, 'data');
  mkdirSync(directory);
  const plugin = openPlugin();
  const [writer, reader] = [podOf('writer'), podOf('reader')];
  const mounted = await plugin.setUp(requestOf(writer, directory), bench.signal);
  assert.deepEqual(mounted, {
    hostPath: join(bench.root, 'pods/uid-writer/volumes/kubernetes.io~local-volume/pv'),
    readOnly: false,
    selinuxRelabel: true,
  });
  assert.equal(statSync(join(mounted.hostPath, '..')).mode & 0o7777, 0o750);
  writeFileSync(join(mounted.hostPath, 'file'), 'written');
  const again = await openPlugin().setUp(requestOf(writer, directory), bench.signal);
  assert.deepEqual(again, mounted, 'a restarted kubelet adopts it');
  const read = await plugin.setUp(requestOf(reader, directory, { readOnly: true }), bench.signal);
  assert.equal(readFileSync(join(read.hostPath, 'file'), 'utf8'), 'written');
  assert.equal(read.selinuxRelabel, false, 'nothing in it can be labelled');
  assert.throws(() => writeFileSync(join(read.hostPath, 'file'), ''), { code: 'EROFS' });
  assert.equal(mountsBeneath(bench.root).length, 2);
  await plugin.tearDown(onDisk(writer), bench.signal);
  await plugin.tearDown(onDisk(reader), bench.signal);
  await plugin.tearDown(onDisk(reader), bench.signal);
  assert.equal(readFileSync(join(directory, 'file'), 'utf8'), 'written', 'the data stay');
});

test(
  'a disk: formatted once, mounted once for all pods, unmounted after the last, its data stay',
  { skip: noLoops },
  async () => {
    const device = disk(16 << 20);
    const [first, second] = [podOf('first'), podOf('second')];
    const plugin = openPlugin();
    const asked = { mountOptions: ['noatime'] };
    // Side by side: only one of them may format.
    const [a, b] = await Promise.all([
      plugin.setUp(requestOf(first, device, asked), bench.signal),
      plugin.setUp(requestOf(second, device, asked), bench.signal),
    ]);
    writeFileSync(join(a.hostPath, 'file'), 'x');
    assert.ok(existsSync(join(b.hostPath, 'file')));
    assert.equal(mountsBeneath(bench.root).length, 3);
    const held = await plugin.stats(onDisk(first), a, bench.signal);
    assert.ok(
      held !== undefined && held.capacityBytes > 8 << 20 && held.capacityBytes < 16 << 20,
      JSON.stringify(held),
    );
    assert.ok(held.inodesUsed > 0 && held.availableBytes > 0);
    await plugin.tearDown(onDisk(first), bench.signal);
    assert.deepEqual(mountsBeneath(bench.root), [globalMount(), b.hostPath]);
    const restarted = openPlugin();
    await restarted.tearDown(onDisk(second), bench.signal);
    assert.deepEqual(mountsBeneath(bench.root), [], 'a restarted kubelet knows who was the last');
    assert.ok(!existsSync(globalMount()));
    const later = await restarted.setUp(requestOf(first, device, { readOnly: true }), bench.signal);
    assert.equal(readFileSync(join(later.hostPath, 'file'), 'utf8'), 'x');
    await restarted.tearDown(onDisk(first), bench.signal);
  },
);

test('a disk that cannot be mounted leaves nothing and says why', { skip: noLoops }, async () => {
  const device = disk(1 << 20);
  const pod = podOf('p');
  await assert.rejects(openPlugin().setUp(requestOf(pod, device, { fsType: 'none' }), bench.signal), {
    message: new RegExp(
      `^local: failed to mount device ${device} at ${globalMount()} \\(fstype: none\\), error cannot run mkfs.none`,
    ),
    detail: { stage: 'MountVolume.MountDevice' },
  });
  assert.ok(!existsSync(globalMount()));
  await openPlugin().tearDown(onDisk(pod), bench.signal);
});

test('paths that cannot be used are refused in upstream’s words', async () => {
  const pod = podOf('p');
  const file = join(bench.root, 'file');
  writeFileSync(file, '');
  const stage = 'MountVolume.NewMounter initialization failed';
  const rows: [string, string][] = [
    [join(bench.root, 'missing'), `path "${join(bench.root, 'missing')}" does not exist`],
    [file, 'only directory and block device are supported'],
  ];
  for (const [path, message] of rows)
    await assert.rejects(openPlugin().setUp(requestOf(pod, path), bench.signal), { message, detail: { stage } });
  await assert.rejects(openPlugin().setUp(requestOf(pod, '/mnt/../etc'), bench.signal), /path must not contain '\.\.'/);
  await assert.rejects(
    openPlugin().setUp(requestOf(pod, join(bench.root, 'missing'), { volumeMode: 'Block' }), bench.signal),
    { detail: { stage: 'MapVolume.EvalHostSymlinks' } },
  );
});

test('the first pod gives it to its group, the next is warned when it asks for another', async () => {
  const directory = join(bench.root, 'data');
  mkdirSync(directory);
  writeFileSync(join(directory, 'file'), '', { mode: 0o600 });
  const plugin = openPlugin();
  const [first, second, same] = [podOf('first', 2345), podOf('second', 3456), podOf('same', 2345)];
  await plugin.setUp(requestOf(first, directory), bench.signal);
  assert.equal(statSync(join(directory, 'file')).gid, 2345);
  assert.equal(statSync(directory).mode & 0o7777, 0o2775);
  await plugin.setUp(requestOf(same, directory), bench.signal);
  await plugin.setUp(requestOf(second, directory), bench.signal);
  assert.equal(statSync(join(directory, 'file')).gid, 2345);
  assert.deepEqual(
    bench.events.map(({ pod, type, reason, message }) => `${pod} ${type} ${reason} ${message}`),
    [
      'second Warning AlreadyMountedVolume The requested fsGroup is 3456, but the volume pv has GID 2345. The volume may not be shareable.',
    ],
  );
  for (const pod of [first, same, second]) await plugin.tearDown(onDisk(pod), bench.signal);
  await plugin.setUp(requestOf(second, directory), bench.signal);
  assert.equal(statSync(join(directory, 'file')).gid, 3456, 'alone, it gets what it asks for');
  writeFileSync(join(directory, 'new'), '');
  chownSync(join(directory, 'new'), 0, 7);
  await openPlugin().setUp(requestOf(second, directory), bench.signal);
  assert.equal(statSync(join(directory, 'new')).gid, 7, 'after a restart nothing is changed under the pod');
  chownSync(directory, 0, 0);
  await openPlugin().setUp(requestOf(second, directory), bench.signal);
  assert.equal(statSync(join(directory, 'new')).gid, 3456, 'unless the change had not been finished');
  await plugin.tearDown(onDisk(second), bench.signal);
});

test('a device is handed out through links, told about, and taken back', { skip: noLoops }, async () => {
  const device = disk(1 << 20);
  const link = join(bench.root, 'link-to-disk');
  execFileSync('ln', ['-s', device, link]);
  const plugin = openPlugin();
  const [first, second] = [podOf('first'), podOf('second')];
  const block = { volumeMode: 'Block' } as const;
  const mounted = await plugin.setUp(requestOf(first, link, { ...block, readOnly: true }), bench.signal);
  const devicePath = join(bench.root, 'pods/uid-first/volumeDevices/kubernetes.io~local-volume/pv');
  assert.deepEqual(mounted, { hostPath: '', devicePath, readOnly: true, selinuxRelabel: false });
  assert.equal(readlinkSync(devicePath), device);
  const globalMap = join(bench.root, 'plugins/kubernetes.io~local-volume/volumeDevices/pv');
  assert.deepEqual(
    bench.events.map(({ reason, message }) => `${reason} ${message}`),
    [
      `SuccessfulMountVolume MapVolume.MapPodDevice succeeded for volume "pv" globalMapPath "${globalMap}"`,
      `SuccessfulMountVolume MapVolume.MapPodDevice succeeded for volume "pv" volumeMapPath "${join(bench.root, 'pods/uid-first/volumeDevices/kubernetes.io~local-volume')}"`,
    ],
  );
  assert.equal((await plugin.stats(onDisk(first, 'Block'), mounted, bench.signal))?.capacityBytes, 1 << 20);
  await plugin.expand(requestOf(first, link, block), mounted, 2 << 20, bench.signal);
  await plugin.setUp(requestOf(second, link, block), bench.signal);
  await plugin.tearDown(onDisk(first, 'Block'), bench.signal);
  assert.ok(existsSync(join(globalMap, 'uid-second')));
  await openPlugin().tearDown(onDisk(second, 'Block'), bench.signal);
  assert.ok(!existsSync(globalMap));
});

test('a disk that became bigger is grown, a directory has nothing to grow', { skip: noLoops }, async () => {
  const ran: string[] = [];
  // Growing a mounted file system needs a capability that root in a container may lack: the command is what counts here.
  const tools: HostCommands = {
    run: (command, args, signal) => {
      ran.push([command, ...args].join(' '));
      return command === 'resize2fs' ? Promise.resolve({ code: 0, output: '' }) : commands.run(command, args, signal);
    },
  };
  const device = disk(16 << 20);
  const directory = join(bench.root, 'data');
  mkdirSync(directory);
  const pod = podOf('p');
  const plugin = openPlugin(tools);
  for (const path of [directory, device]) {
    const request = requestOf(pod, path);
    const mounted = await plugin.setUp(request, bench.signal);
    ran.splice(0);
    await plugin.expand(request, mounted, 32 << 20, bench.signal);
    assert.deepEqual(
      ran.filter((line) => line.startsWith('resize')),
      path === device ? [`resize2fs ${device}`] : [],
    );
    await plugin.tearDown(onDisk(pod), bench.signal);
  }
});
