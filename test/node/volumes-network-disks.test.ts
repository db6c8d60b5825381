// iSCSI and fibre channel volumes on a scripted host.
// runs: gate
// shows: volumes: NFS, iSCSI, fibre channel
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { Pod } from '../../src/core/pod.ts';
import type { VolumeMode } from '../../src/core/storage.ts';
import type { VolumePlugin, VolumeRequest } from '../../src/volumes/plugin.ts';
import { IQN, openPlugin, requestFor, ScriptedHost } from './volumes-scripted-host.ts';
import { Bench, mountsBeneath, podNamed } from './volumes-setup.ts';

const noLoops = existsSync('/dev/loop-control') ? false : 'this machine has no loop devices';

let bench: Bench;
let host: ScriptedHost;
beforeEach(() => {
  bench = new Bench();
  host = new ScriptedHost(bench.root);
});
afterEach(() => {
  const left = bench.dispose();
  host.dispose();
  assert.deepEqual(left, [], 'nothing is left mounted');
  const loops = execFileSync('losetup', ['-a', '-O', 'BACK-FILE', '-n'], { encoding: 'utf8' });
  assert.ok(!loops.includes(bench.root), `no loop device is left: ${loops}`);
});

const open = (kind: 'iscsi' | 'fc'): VolumePlugin => openPlugin(bench, host, kind);
const requestOf = (pod: Pod, source: Record<string, unknown>, mode?: VolumeMode): VolumeRequest =>
  requestFor(bench, pod, source, mode);
const onDisk = (pod: Pod, volumeMode: VolumeMode = 'Filesystem') => ({
  uid: pod.metadata.uid ?? '',
  specName: 'data',
  volumeMode,
});
const iscsi = (more: Record<string, unknown> = {}) => ({
  iscsi: { targetPortal: '192.0.2.7', iqn: IQN, lun: 1, ...more },
});
const LINK = `ip-192.0.2.7:3260-iscsi-${IQN}-lun-1`;
const NODE = `iscsiadm -m node -p 192.0.2.7:3260 -T ${IQN}`;
const DISCOVERY = 'iscsiadm -m discoverydb -t sendtargets -p 192.0.2.7:3260 -I default';

test(
  'iSCSI: logged in once, mounted once for two pods, logged out after the last, also by a restarted kubelet',
  { skip: noLoops },
  async () => {
    const name = host.disk();
    host.appears.push({ by: 'by-path', name: LINK, disk: name });
    const plugin = open('iscsi');
    const [first, second] = [podNamed('first', {}), podNamed('second', {})];
    const a = await plugin.setUp(requestOf(first, iscsi()), bench.signal);
    assert.deepEqual(host.ran.splice(0), [
      'iscsiadm -m iface -I default -o show',
      `${DISCOVERY} -o new`,
      `${DISCOVERY} --discover`,
      `${NODE} -I default -o update -n node.session.scan -v manual`,
      `${NODE} -I default --login`,
      '0 0 1 > /class/scsi_host/host3/scan',
      `${NODE} -o update -n node.startup -v manual`,
    ]);
    const global = join(bench.root, `plugins/kubernetes.io/iscsi/iface-default/192.0.2.7:3260-${IQN}-lun-1`);
    assert.equal(a.hostPath, join(bench.root, 'pods/uid-first/volumes/kubernetes.io~iscsi/data'));
    writeFileSync(join(a.hostPath, 'file'), 'x');
    const withPort = iscsi({ targetPortal: '192.0.2.7:3260' });
    assert.deepEqual(
      [iscsi(), withPort].map((source) => plugin.attachedName?.(requestOf(first, source))),
      [`kubernetes.io/iscsi/192.0.2.7:${IQN}:1`, `kubernetes.io/iscsi/192.0.2.7:3260:${IQN}:1`],
    );
    const b = await plugin.setUp(requestOf(second, iscsi()), bench.signal);
    assert.ok(!host.ran.some((line) => line.includes('--login')), 'the session is there');
    assert.equal(readFileSync(join(b.hostPath, 'file'), 'utf8'), 'x');
    await plugin.tearDown(onDisk(first), bench.signal);
    assert.deepEqual(mountsBeneath(bench.root), [global, b.hostPath]);
    host.ran.splice(0);
    const restarted = open('iscsi');
    assert.deepEqual(await restarted.reconstruct?.(onDisk(second)), {
      attachedName: `kubernetes.io/iscsi/192.0.2.7:${IQN}:1`,
      uniqueName: `kubernetes.io/iscsi/192.0.2.7:${IQN}:1`,
    });
    await restarted.tearDown(onDisk(second), bench.signal);
    assert.deepEqual(host.ran, [
      `1 > /block/${name}/device/delete`,
      `${NODE} -I default --logout`,
      `${NODE} -I default -o delete`,
    ]);
    assert.ok(!existsSync(join(bench.root, 'plugins/kubernetes.io/iscsi/iface-default')));
    await restarted.tearDown(onDisk(second), bench.signal);
  },
);

test('iSCSI: a setup that was cut off after the mount is undone', { skip: noLoops }, async () => {
  const name = host.disk();
  host.appears.push({ by: 'by-path', name: LINK, disk: name });
  const pod = podNamed('p', {});
  const plugin = open('iscsi');
  await plugin.setUp(requestOf(pod, iscsi()), bench.signal);
  execFileSync('umount', [join(bench.root, 'pods/uid-p/volumes/kubernetes.io~iscsi/data')]);
  await open('iscsi').tearDown(onDisk(pod), bench.signal);
  assert.deepEqual(mountsBeneath(bench.root), []);
  assert.ok(host.ran.includes(`${NODE} -I default --logout`));
  await plugin.setUp(requestOf(pod, iscsi()), bench.signal);
  rmSync(join(bench.root, 'pods/uid-p/plugins'), { recursive: true });
  await open('iscsi').tearDown(onDisk(pod), bench.signal);
  assert.deepEqual(mountsBeneath(bench.root), [], 'also of one that another kubelet set up');
});

test('iSCSI: a device that another kubelet mapped goes with its pod, and no other', { skip: noLoops }, async () => {
  const disks = [host.disk(), host.disk()];
  const sources = disks.map((disk, i) => {
    host.appears.push({ by: 'by-path', name: `ip-192.0.2.7:3260-iscsi-${IQN}-lun-${i + 1}`, disk });
    return iscsi({ lun: i + 1 });
  });
  const pod = podNamed('p', {});
  for (const [i, source] of sources.entries()) {
    const request = { ...requestOf(pod, source, 'Block'), specName: `pv-${i}` };
    await open('iscsi').setUp(request, bench.signal);
  }
  const kept = readFileSync(join(bench.root, 'pods/uid-p/plugins/kubernetes.io~iscsi/pv-1.json'));
  rmSync(join(bench.root, 'pods/uid-p/plugins'), { recursive: true });
  const links = join(bench.root, 'pods/uid-p/volumeDevices/kubernetes.io~iscsi');
  const maps = join(bench.root, 'plugins/kubernetes.io/iscsi/volumeDevices/iface-default');
  const binds = (): boolean[] =>
    [1, 2].map((lun) => existsSync(join(maps, `192.0.2.7:3260-${IQN}-lun-${lun}`, 'uid-p')));
  await open('iscsi').tearDown({ ...onDisk(pod, 'Block'), specName: 'pv-0' }, bench.signal);
  assert.deepEqual([readdirSync(links), binds()], [['pv-1'], [false, true]]);
  mkdirSync(join(bench.root, 'pods/uid-p/plugins/kubernetes.io~iscsi'), { recursive: true });
  writeFileSync(join(bench.root, 'pods/uid-p/plugins/kubernetes.io~iscsi/pv-1.json'), kept);
  await open('iscsi').tearDown({ ...onDisk(pod, 'Block'), specName: 'pv-1' }, bench.signal);
  assert.deepEqual([readdirSync(links), binds()], [[], [false, false]]);
});

test('iSCSI: CHAP with the values of the secret, which no message repeats; a failed login leaves no record', async () => {
  bench.secrets.set('golden/chap', {
    metadata: { name: 'chap' },
    data: { 'node.session.auth.username': btoa('me'), 'node.session.auth.password': btoa('hidden') },
  });
  const pod = podNamed('p', {});
  const source = iscsi({ chapAuthSession: true, secretRef: { name: 'chap' } });
  host.answers.set('--login', { code: 24, output: 'authorization failure' });
  await assert.rejects(open('iscsi').setUp(requestOf(pod, source), bench.signal), {
    message: `failed to get any path for iscsi disk, last err seen:\niscsiadm ${NODE.slice('iscsiadm '.length)} -I default --login failed: exit status 24: authorization failure`,
    detail: { stage: 'MountVolume.WaitForAttach' },
  });
  const rounds = host.ran.filter((line) => line === `${NODE} -I default -o delete`);
  assert.equal(rounds.length, 5);
  const auth = `${NODE} -I default -o update -n node.session.auth`;
  assert.deepEqual(host.ran.filter((line) => line.startsWith(auth)).slice(0, 3), [
    `${auth}.authmethod -v CHAP`,
    `${auth}.username -v me`,
    `${auth}.password -v hidden`,
  ]);
  host.answers.set('auth.password', { code: 1, output: 'hidden' });
  await assert.rejects(open('iscsi').setUp(requestOf(pod, source), bench.signal), (err: Error) => {
    assert.ok(!err.message.includes('hidden'), err.message);
    return true;
  });
  const missing = iscsi({ chapAuthSession: true, secretRef: { name: 'other' } });
  await assert.rejects(open('iscsi').setUp(requestOf(pod, missing), bench.signal), {
    message: 'couldn\'t get secret golden/other error: secret "other" not found',
  });
  await open('iscsi').tearDown(onDisk(pod), bench.signal);
});

test(
  'iSCSI: an initiator name of its own gets an interface of its own; a multipath device is used and flushed',
  { skip: noLoops },
  async () => {
    const name = host.disk();
    host.appears.push({ by: 'by-path', name: LINK, disk: name });
    host.multipath('dm-7', [name], join(host.dev, name));
    const pod = podNamed('p', {});
    const plugin = open('iscsi');
    const source = iscsi({ initiatorName: 'iqn.own', portals: ['192.0.2.7:3260'] });
    const mounted = await plugin.setUp(requestOf(pod, source), bench.signal);
    assert.ok(existsSync(mounted.hostPath));
    const own = 'iscsiadm -m iface -I 192.0.2.7:3260:data';
    assert.deepEqual(host.ran.slice(0, 4), [
      'iscsiadm -m iface -I default -o show',
      `${own} -o new`,
      `${own} -o update -n iface.initiatorname -v iqn.own`,
      `${own} -o update -n iface.mtu -v 0`,
    ]);
    host.ran.splice(0);
    await plugin.tearDown(onDisk(pod), bench.signal);
    assert.deepEqual(host.ran, [
      'multipath -f dm-7',
      `1 > /block/${name}/device/delete`,
      `${NODE} -I 192.0.2.7:3260:data --logout`,
      `${NODE} -I 192.0.2.7:3260:data -o delete`,
      `${own} -o delete`,
    ]);
  },
);

test('FC: found after a scan, mounted, shared and removed', { skip: noLoops }, async () => {
  const name = host.disk();
  host.appears.push({ by: 'by-path', name: 'pci-0000:05:00.0-fc-0x50060e80-lun-2', disk: name });
  const pod = podNamed('p', {});
  const plugin = open('fc');
  const source = { fc: { targetWWNs: ['50060e80'], lun: 2, fsType: 'ext4' } };
  const mounted = await plugin.setUp(requestOf(pod, source), bench.signal);
  assert.deepEqual(host.ran.splice(0), ['- - - > /class/scsi_host/host3/scan']);
  assert.deepEqual(mountsBeneath(bench.root), [
    join(bench.root, 'plugins/kubernetes.io/fc/50060e80-lun-2'),
    mounted.hostPath,
  ]);
  const reader = podNamed('reader', {});
  const read = await plugin.setUp(requestOf(reader, { fc: { ...source.fc, readOnly: true } }), bench.signal);
  assert.deepEqual([mounted.selinuxRelabel, read.selinuxRelabel], [true, false], 'a reader cannot be labelled');
  await plugin.tearDown(onDisk(reader), bench.signal);
  assert.deepEqual(host.ran.splice(0), ['- - - > /class/scsi_host/host3/scan'], 'the disk stays');
  assert.equal(plugin.uniqueName?.(requestOf(pod, source)), 'kubernetes.io/fc/[50060e80]:2');
  await open('fc').tearDown(onDisk(pod), bench.signal);
  assert.deepEqual(host.ran, [`blockdev --flushbufs ${join(host.dev, name)}`, `1 > /block/${name}/device/delete`]);
  assert.ok(!existsSync(join(bench.root, 'plugins/kubernetes.io/fc/50060e80-lun-2')));
});

test(
  'FC: by its own name, as a device, through multipath; a disk that is not there is said',
  { skip: noLoops },
  async () => {
    const name = host.disk();
    const pod = podNamed('p', {});
    const plugin = open('fc');
    const source = { fc: { wwids: ['3600 508'] } };
    await assert.rejects(plugin.setUp(requestOf(pod, source, 'Block'), bench.signal), {
      message: 'no fc disk found',
      detail: { stage: 'MapVolume.WaitForAttach' },
    });
    host.link('by-id', 'scsi-3600_508', name);
    host.multipath('dm-2', [name], join(host.dev, name));
    const mounted = await plugin.setUp(requestOf(pod, source, 'Block'), bench.signal);
    assert.equal(mounted.devicePath, join(bench.root, 'pods/uid-p/volumeDevices/kubernetes.io~fc/data'));
    const global = join(bench.root, 'plugins/kubernetes.io/fc/volumeDevices/3600_508');
    assert.ok(existsSync(join(global, 'uid-p')));
    host.ran.splice(0);
    await plugin.tearDown(onDisk(pod, 'Block'), bench.signal);
    assert.deepEqual(host.ran, [
      'multipath -f dm-2',
      `blockdev --flushbufs ${join(host.dev, name)}`,
      `1 > /block/${name}/device/delete`,
    ]);
    assert.ok(!existsSync(global));
    for (const bad of [{ fc: { lun: 1 } }, { fc: { targetWWNs: ['../x'], lun: 1 } }]) {
      assert.equal(plugin.attachedName?.(requestOf(pod, bad)), undefined, 'a question about it breaks nothing');
      await assert.rejects(plugin.setUp(requestOf(pod, bad), bench.signal), /no fc disk information found/);
    }
    for (const bad of [
      iscsi({ iqn: 'a/../b' }),
      iscsi({ targetPortal: '../x' }),
      iscsi({ iscsiInterface: '../../etc' }),
    ])
      await assert.rejects(open('iscsi').setUp(requestOf(pod, bad), bench.signal), { kind: 'invalid' });
  },
);

test('FC: a disk that took over the name of one that is gone is left alone', { skip: noLoops }, async () => {
  const name = host.disk();
  const link = 'fc-0x50060e80-lun-2';
  host.appears.push({ by: 'by-path', name: link, disk: name });
  const pod = podNamed('p', {});
  await open('fc').setUp(requestOf(pod, { fc: { targetWWNs: ['50060e80'], lun: 2 } }), bench.signal);
  // What a reboot makes of it: the target's link is not there, and its disk's name is another disk's.
  rmSync(join(host.dev, 'disk/by-path', link));
  host.ran.splice(0);
  await open('fc').tearDown(onDisk(pod), bench.signal);
  assert.deepEqual(host.ran, []);
});
