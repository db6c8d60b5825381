// The manager on real mounts: errors and their words, updates, refusals, sub paths, restarts, leftovers.
// runs: gate
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { Container, Pod, Volume, VolumeMount } from '../../src/core/pod.ts';
import { KubeletError } from '../../src/lib/errors.ts';
import { ManualClock } from '../../src/lib/manual-clock.ts';
import { Bench, listing, mountsBeneath, podNamed } from './volumes-setup.ts';
import { timePasses, until, untilSeen } from '../harness/until.ts';

let bench: Bench;
beforeEach(() => void (bench = new Bench()));
afterEach(() => assert.deepEqual(bench.dispose(), [], 'nothing is left mounted'));

const b64 = (text: string): string => Buffer.from(text).toString('base64');

/** A pod whose only container mounts every one of these volumes. */
function podWith(name: string, volumes: Volume[], extra: Partial<Pod['spec']> = {}, mounts: VolumeMount[] = []): Pod {
  const all = volumes.map((v) => ({ name: v.name, mountPath: `/v/${v.name}` }));
  return podNamed(name, { volumes, containers: [{ name: 'c', volumeMounts: [...all, ...mounts] }], ...extra });
}
const only = (pod: Pod): Container => pod.spec.containers[0] ?? { name: 'c' };

async function rejection(work: Promise<unknown>): Promise<KubeletError> {
  try {
    await work;
  } catch (err) {
    assert.ok(err instanceof KubeletError);
    return err;
  }
  return assert.fail('should have failed');
}

async function removed(volumes: ReturnType<Bench['open']>, pod: Pod): Promise<void> {
  const uid = pod.metadata.uid ?? '';
  volumes.manager.podRemoved(uid);
  await volumes.manager.waitUnmounted(uid, bench.signal);
  assert.equal(volumes.manager.hasMounts(uid), false);
  volumes.manager.reopen(uid);
}

test('a missing config map is named while the pod waits, and mounted the moment it appears', async () => {
  // It stands still: however long things take here, nothing is given up or tried again by itself.
  const clock = new ManualClock();
  const volumes = bench.open({ clock }, { waitTimeoutMs: 150 });
  const pod = podWith('late', [{ name: 'conf', configMap: { name: 'later' } }]);
  const refused = rejection(volumes.manager.waitMounted(pod, bench.signal));
  await untilSeen(
    'it is told',
    () => bench.events,
    (seen) => seen.length > 0,
  );
  await clock.advance(150);
  const err = await refused;
  const said = 'MountVolume.SetUp failed for volume "conf" : configmap "later" not found';
  assert.equal(
    err.message,
    `unmounted volumes=[conf], unattached volumes=[], failed to process volumes=[]: context deadline exceeded: volume "conf": ${said} (for 0s)`,
  );
  assert.equal(err.kind, 'deadline');
  assert.deepEqual(bench.events[0], { pod: 'late', type: 'Warning', reason: 'FailedMount', message: said });
  assert.match(volumes.manager.blockedOn('uid-late') ?? '', /^waiting for volume "conf": MountVolume.SetUp failed/);
  assert.equal(existsSync(join(volumes.layout.volumesDir('uid-late'), 'kubernetes.io~configmap')), false);
  const waiting = volumes.manager.waitMounted(pod, bench.signal);
  bench.configMaps.set('golden/later', { metadata: { name: 'later' }, data: { a: '1' } });
  volumes.manager.objectChanged('configMap', 'golden', 'later');
  await waiting;
  assert.equal(volumes.manager.blockedOn('uid-late'), undefined);
  await removed(volumes, pod);
});

test('an update reaches the files at once and nothing is rewritten without one', async () => {
  bench.secrets.set('golden/s', { metadata: { name: 's' }, data: { a: b64('1'), b: b64('2') } });
  // It stands still: nothing is written again because time has passed.
  const volumes = bench.open({ clock: new ManualClock() });
  const pod = podWith('up', [
    { name: 'sec', secret: { secretName: 's' } },
    { name: 'proj', projected: { sources: [{ secret: { name: 's', items: [{ key: 'a', path: 'x/y' }] } }] } },
    { name: 'down', downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: 'metadata.labels' } }] } },
  ]);
  await volumes.manager.waitMounted(pod, bench.signal);
  const at = (name: string): string => volumes.manager.mountsOf('uid-up').get(name)?.hostPath ?? '';
  const before = readlinkSync(join(at('sec'), '..data'));
  volumes.manager.remount('uid-up');
  await untilSeen(
    'refresh',
    () => volumes.manager.blockedOn('uid-up'),
    (seen) => seen === undefined,
  );
  await timePasses(30, 'nothing to happen');
  assert.equal(readlinkSync(join(at('sec'), '..data')), before, 'same content, same directory');
  bench.secrets.set('golden/s', { metadata: { name: 's' }, data: { a: b64('new') } });
  volumes.manager.objectChanged('secret', 'other-namespace', 's');
  volumes.manager.objectChanged('secret', 'golden', 's');
  await untilSeen(
    'update',
    () => readFileSync(join(at('sec'), 'a'), 'utf8'),
    (seen) => seen === 'new',
  );
  await untilSeen(
    'projected update',
    () => readFileSync(join(at('proj'), 'x/y'), 'utf8'),
    (seen) => seen === 'new',
  );
  // The link is switched first; the name that is no more and the directory before go right after it.
  const named = (pattern: RegExp): number => listing(at('sec')).filter((line) => pattern.test(line)).length;
  await untilSeen(
    'stale name gone',
    () => named(/ \.\/b( |$)/),
    (seen) => seen === 0,
  );
  await untilSeen(
    'directory before gone',
    () => named(/^d.* \.\/\.\.20/),
    (seen) => seen === 1,
  );
  volumes.manager.setDesired({ ...pod, metadata: { ...pod.metadata, labels: { now: 'here' } } });
  await untilSeen(
    'labels',
    () => readFileSync(join(at('down'), 'l'), 'utf8'),
    (seen) => seen === 'now="here"',
  );
  bench.secrets.delete('golden/s');
  volumes.manager.objectChanged('secret', 'golden', 's');
  await untilSeen(
    'complaint',
    () => volumes.manager.blockedOn('uid-up'),
    (seen) => seen !== undefined,
  );
  assert.equal(readFileSync(join(at('sec'), 'a'), 'utf8'), 'new', 'content stays when the object goes');
  assert.equal(volumes.manager.mountsOf('uid-up').size, 3);
  await removed(volumes, pod);
});

test('optional sources may be missing; missing keys are named', async () => {
  bench.configMaps.set('golden/c', { metadata: { name: 'c' }, data: { k: 'v' } });
  const clock = new ManualClock();
  const volumes = bench.open({ clock }, { waitTimeoutMs: 100 });
  const fine = podWith('fine', [
    { name: 'a', configMap: { name: 'none', optional: true } },
    { name: 'b', secret: { secretName: 'none', optional: true } },
    { name: 'c', configMap: { name: 'c', optional: true, items: [{ key: 'nokey', path: 'p' }] } },
  ]);
  await volumes.manager.waitMounted(fine, bench.signal);
  await removed(volumes, fine);
  const bad = podWith('bad', [{ name: 'c', configMap: { name: 'c', items: [{ key: 'nokey', path: 'p' }] } }]);
  const refused = rejection(volumes.manager.waitMounted(bad, bench.signal));
  await untilSeen(
    'it is told',
    () => bench.events,
    (seen) => seen.length > 0,
  );
  await clock.advance(100);
  const err = await refused;
  assert.match(err.message, /configmap references non-existent config key: nokey/);
  await removed(volumes, bad);
});

test('kinds without a plugin are refused at once', async () => {
  const volumes = bench.open();
  for (const volume of [
    { name: 'x', csi: { driver: 'd' } },
    { name: 'x', gitRepo: { repository: 'https://example.com' } },
    { name: 'x', projected: { sources: [{ podCertificate: { signerName: 'example.com/s', keyType: 'ED25519' } }] } },
  ] satisfies Volume[]) {
    const pod = podWith('no', [volume]);
    const err = await rejection(volumes.manager.waitMounted(pod, bench.signal));
    assert.equal(err.kind, 'unimplemented');
    assert.match(
      err.message,
      /^volume "x" (is of kind (csi|gitRepo), which this kubelet|projects a podCertificate, which needs)/,
    );
    await removed(volumes, pod);
  }
});

test('only volumes that a container uses are mounted; image volumes have no host path', async () => {
  const volumes = bench.open();
  const pod = podNamed('some', {
    volumes: [
      { name: 'used', emptyDir: {} },
      { name: 'idle', configMap: { name: 'missing' } },
      { name: 'img', image: { reference: 'r' } },
    ],
    containers: [
      {
        name: 'c',
        volumeMounts: [
          { name: 'used', mountPath: '/u' },
          { name: 'img', mountPath: '/i' },
        ],
      },
    ],
  });
  await volumes.manager.waitMounted(pod, bench.signal);
  assert.deepEqual([...volumes.manager.mountsOf('uid-some').keys()], ['used']);
  const stats = await Array.fromAsync(volumes.manager.statsOf(['uid-some', 'uid-none'], bench.signal));
  assert.deepEqual(
    stats.map(({ uid, volumes: found }) => [uid, found.get('used')?.inodesUsed]),
    [
      ['uid-some', 1],
      ['uid-none', undefined],
    ],
  );
  await removed(volumes, pod);
});

test('what the kubelet wrote is measured, in memory by what its filesystem says', async () => {
  bench.configMaps.set('golden/c', { metadata: { name: 'c' }, data: { a: '1', b: 'x'.repeat(5000) } });
  const volumes = bench.open();
  const limits = { memory: '50Mi' };
  const pod = podWith('sized', [
    { name: 'proj', projected: { sources: [{ configMap: { name: 'c' } }] } },
    { name: 'conf', configMap: { name: 'c' } },
  ]);
  const sized = { ...pod, spec: { ...pod.spec, containers: [{ ...only(pod), resources: { limits } }] } };
  await volumes.manager.waitMounted(sized, bench.signal);
  const [stats] = await Array.fromAsync(volumes.manager.statsOf(['uid-sized'], bench.signal));
  const [projected, written] = ['proj', 'conf'].map((name) => stats?.volumes.get(name));
  // The directory, the one with the content and the link to it; two files and the links to them.
  assert.deepEqual([projected?.inodesUsed, written?.inodesUsed], [7, 7]);
  assert.deepEqual([projected?.usedBytes, projected?.availableBytes], [3 * 4096, 50 * 2 ** 20 - 3 * 4096]);
  assert.deepEqual([projected?.source, written?.source], ['statfs', 'du']);
  await removed(volumes, sized);
});

test('host path types are checked in the recorded words', async () => {
  const volumes = bench.open();
  const file = join(bench.root, 'file');
  writeFileSync(file, '');
  const rows: [string, string, RegExp | undefined][] = [
    [join(bench.root, 'made/deep'), 'DirectoryOrCreate', undefined],
    [join(bench.root, 'made-file'), 'FileOrCreate', undefined],
    [file, 'File', undefined],
    ['/dev/null', 'CharDevice', undefined],
    [join(bench.root, 'nowhere'), '', undefined],
    [file, 'Directory', /: hostPath type check failed: .*file is not a directory/],
    [file, 'DirectoryOrCreate', /file is not a directory/],
    [bench.root, 'File', /is not a file/],
    [bench.root, 'FileOrCreate', /is not a file/],
    [file, 'Socket', /is not a socket file/],
    [file, 'BlockDevice', /is not a block device/],
    [join(bench.root, 'nowhere'), 'File', /is not a file/],
    [`${bench.root}/../etc`, '', /must not contain '\.\.'/],
    ['relative', '', /must be absolute/],
    [file, 'Sockets', /Sockets is an invalid volume type/],
  ];
  for (const [path, type, want] of rows) {
    const pod = podWith('hp', [{ name: 'h', hostPath: { path, type } }]);
    if (want === undefined) await volumes.manager.waitMounted(pod, bench.signal);
    else {
      volumes.manager.setDesired(pod);
      const said = (): boolean => want.test(volumes.manager.blockedOn('uid-hp') ?? '');
      await until(`${path} as ${type} is refused with ${want}`, said);
    }
    await removed(volumes, pod);
  }
  assert.equal(statSync(join(bench.root, 'made/deep')).mode & 0o777, 0o755);
  assert.equal(statSync(join(bench.root, 'made-file')).mode & 0o777, 0o644);
});

test('a sub path follows the volume, is bound once, and is cleaned up', async () => {
  bench.configMaps.set('golden/c', { metadata: { name: 'c' }, data: { f: 'one' } });
  const host = join(bench.root, 'host');
  mkdirSync(join(host, 'sub'), { recursive: true });
  const volumes = bench.open();
  const pod = podWith(
    'sp',
    [
      { name: 'conf', configMap: { name: 'c' } },
      { name: 'h', hostPath: { path: host } },
    ],
    {},
    [
      { name: 'conf', mountPath: '/x', subPath: 'f' },
      { name: 'h', mountPath: '/y', subPath: 'sub' },
    ],
  );
  await volumes.manager.waitMounted(pod, bench.signal);
  const bound = await volumes.manager.prepareSubPath(pod, only(pod), 2, 'f', bench.signal);
  assert.equal(bound, await volumes.manager.prepareSubPath(pod, only(pod), 2, 'f', bench.signal));
  assert.equal(mountsBeneath(bench.root).filter((t) => t === bound).length, 1);
  assert.equal(readFileSync(bound, 'utf8'), 'one');
  bench.configMaps.set('golden/c', { metadata: { name: 'c' }, data: { f: 'two' } });
  volumes.manager.objectChanged('configMap', 'golden', 'c');
  const conf = volumes.manager.mountsOf('uid-sp').get('conf')?.hostPath ?? '';
  await untilSeen(
    'update',
    () => readFileSync(join(conf, 'f'), 'utf8'),
    (seen) => seen === 'two',
  );
  assert.equal(await volumes.manager.prepareSubPath(pod, only(pod), 2, 'f', bench.signal), bound);
  assert.equal(readFileSync(bound, 'utf8'), 'two', 'the next start of the container sees the new file');
  const dir = await volumes.manager.prepareSubPath(pod, only(pod), 3, 'sub', bench.signal);
  writeFileSync(join(dir, 'data'), 'kept');
  const missing = await volumes.manager.prepareSubPath(pod, only(pod), 2, 'no-key', bench.signal);
  assert.ok(statSync(missing).isDirectory(), 'what is missing becomes a directory, in a written volume too');
  for (const bad of ['/etc', '../x', 'a/../../x']) {
    assert.equal(
      (await rejection(volumes.manager.prepareSubPath(pod, only(pod), 3, bad, bench.signal))).kind,
      'invalid',
    );
  }
  await removed(volumes, pod);
  assert.equal(readFileSync(join(host, 'sub/data'), 'utf8'), 'kept');
  assert.equal(existsSync(volumes.layout.subPathsDir('uid-sp')), false);
});

test('a new manager adopts wanted volumes and removes the others once it may', async () => {
  bench.secrets.set('golden/s', { metadata: { name: 's' }, data: { a: b64('1') } });
  const spec: Volume[] = [
    { name: 'e', emptyDir: {} },
    { name: 'm', emptyDir: { medium: 'Memory' } },
    { name: 's', secret: { secretName: 's' } },
    { name: 'h', hostPath: { path: bench.root } },
  ];
  const stays = podWith('stays', spec, {}, [{ name: 'h', mountPath: '/p', subPath: 'pods' }]);
  const goes = podWith('goes', spec, {}, [{ name: 'h', mountPath: '/p', subPath: 'pods' }]);
  const first = bench.open();
  for (const pod of [stays, goes]) {
    await first.manager.waitMounted(pod, bench.signal);
    await first.manager.prepareSubPath(pod, only(pod), 4, 'pods', bench.signal);
  }
  const e = first.manager.mountsOf('uid-stays').get('e')?.hostPath ?? '';
  const m = first.manager.mountsOf('uid-stays').get('m')?.hostPath ?? '';
  writeFileSync(join(e, 'data'), 'disk');
  writeFileSync(join(m, 'data'), 'memory');
  const mountedBefore = mountsBeneath(bench.root);
  const second = bench.open();
  await second.manager.reconstruct(bench.signal);
  assert.equal(second.manager.hasMounts('uid-goes'), true);
  const [held] = await Array.fromAsync(second.manager.statsOf(['uid-stays'], bench.signal));
  assert.equal(held?.volumes.get('e')?.inodesUsed, 2, 'what is on the disk counts before it is set up again');
  assert.deepEqual(held.failed, new Set());
  await second.manager.waitMounted(stays, bench.signal);
  assert.deepEqual(mountsBeneath(bench.root), mountedBefore, 'nothing is unmounted before sources are read');
  second.manager.removeUnknown((uid) => uid === 'uid-stays');
  await second.manager.waitUnmounted('uid-goes', bench.signal);
  assert.deepEqual(mountsBeneath(second.layout.podDir('uid-goes')), []);
  assert.equal(readFileSync(join(e, 'data'), 'utf8') + readFileSync(join(m, 'data'), 'utf8'), 'diskmemory');
  assert.equal(mountsBeneath(second.layout.podDir('uid-stays')).length, 3);
  await second.podDirs.removeOrphan('uid-goes', bench.signal);
  assert.deepEqual(await second.podDirs.list(), ['uid-stays']);
  const refused = await rejection(second.podDirs.removeOrphan('uid-stays', bench.signal));
  assert.match(refused.message, /still has 3 mounts/);
  await removed(second, stays);
});

test('a pod that comes back changed under its old UID gets the new volume and loses the old', async () => {
  const volumes = bench.open();
  await volumes.manager.waitMounted(podWith('st', [{ name: 'v', emptyDir: { medium: 'Memory' } }]), bench.signal);
  bench.configMaps.set('golden/c', { metadata: { name: 'c' }, data: { a: '1' } });
  const next = bench.open();
  await next.manager.reconstruct(bench.signal);

  const pod = podWith('st', [{ name: 'v', configMap: { name: 'c' } }]);
  await next.manager.waitMounted(pod, bench.signal);
  await untilSeen(
    'old one gone',
    () => mountsBeneath(bench.root),
    (seen) => seen.length === 0,
  );
  assert.ok(existsSync(join(next.manager.mountsOf('uid-st').get('v')?.hostPath ?? '', 'a')));
  await removed(next, pod);
});

test('after a reboot in-memory volumes are made anew and disks keep what they had', async () => {
  bench.secrets.set('golden/s', { metadata: { name: 's' }, data: { a: b64('1') } });
  const pod = podWith('boot', [
    { name: 'e', emptyDir: {} },
    { name: 'm', emptyDir: { medium: 'Memory' } },
    { name: 's', secret: { secretName: 's' } },
  ]);
  const first = bench.open();
  await first.manager.waitMounted(pod, bench.signal);
  const at = (name: string): string => first.manager.mountsOf('uid-boot').get(name)?.hostPath ?? '';
  for (const name of ['e', 'm']) writeFileSync(join(at(name), 'data'), 'x');
  for (const target of mountsBeneath(bench.root)) execFileSync('umount', [target]);
  const second = bench.open();
  await second.manager.reconstruct(bench.signal);
  await second.manager.waitMounted(pod, bench.signal);
  assert.equal(mountsBeneath(bench.root).length, 2);
  assert.equal(readFileSync(join(at('e'), 'data'), 'utf8'), 'x');
  assert.equal(existsSync(join(at('m'), 'data')), false);
  assert.equal(statSync(at('m')).mode & 0o7777, 0o1777);
  assert.equal(readFileSync(join(at('s'), 'a'), 'utf8'), '1');
  await removed(second, pod);
});

test('a busy volume names who holds it and goes when it is let go', async () => {
  const volumes = bench.open();
  const pod = podWith('busy', [{ name: 'm', emptyDir: { medium: 'Memory' } }]);
  await volumes.manager.waitMounted(pod, bench.signal);
  const path = volumes.manager.mountsOf('uid-busy').get('m')?.hostPath ?? '';
  const holder = spawn('sleep', ['100'], { cwd: path, stdio: 'ignore' });
  await untilSeen(
    'holder',
    () => readlinkSync(`/proc/${holder.pid}/cwd`),
    (seen) => seen === path,
  );
  volumes.manager.podRemoved('uid-busy');
  const named = new RegExp(
    `UnmountVolume.TearDown failed for volume "m" : .*held by pid ${holder.pid} \\(sleep, open files\\)`,
  );
  await until('holder named', () => named.test(volumes.manager.blockedOn('uid-busy') ?? ''));
  holder.kill('SIGKILL');
  await volumes.manager.waitUnmounted('uid-busy', bench.signal);
});

test('fsGroup owns what a pod can write, and the owner of tokens is the common user', async () => {
  const volumes = bench.open();
  const token = { serviceAccountToken: { path: 'token' } };
  const pod = podWith(
    'own',
    [
      { name: 'e', emptyDir: {} },
      { name: 't', projected: { sources: [token] } },
    ],
    { securityContext: { runAsUser: 1000, fsGroup: 3000 } },
  );
  await volumes.manager.waitMounted(pod, bench.signal);
  const path = volumes.manager.mountsOf('uid-own').get('t')?.hostPath ?? '';
  const stat = statSync(join(path, 'token'));
  assert.deepEqual([stat.uid, stat.gid, stat.mode & 0o7777], [1000, 3000, 0o640]);
  await removed(volumes, pod);
  const alone = podWith('alone', [{ name: 't', projected: { sources: [token] } }], {
    securityContext: { runAsUser: 1000 },
  });
  await volumes.manager.waitMounted(alone, bench.signal);
  const own = statSync(join(volumes.manager.mountsOf('uid-alone').get('t')?.hostPath ?? '', 'token'));
  assert.deepEqual([own.uid, own.gid, own.mode & 0o7777], [1000, 0, 0o600]);
  await removed(volumes, alone);
});

test('mounts that a container left in its volume go with it, and their files stay', async () => {
  const volumes = bench.open();
  const pod = podWith('nest', [{ name: 'e', emptyDir: {} }]);
  await volumes.manager.waitMounted(pod, bench.signal);
  const path = volumes.manager.mountsOf('uid-nest').get('e')?.hostPath ?? '';
  const outside = join(bench.root, 'outside');
  mkdirSync(join(path, 'in'));
  mkdirSync(outside);
  writeFileSync(join(outside, 'precious'), 'x');
  symlinkSync(outside, join(path, 'link'));
  spawn('mount', ['--bind', outside, join(path, 'in')]);
  await until('bind', () => existsSync(join(path, 'in/precious')));
  await removed(volumes, pod);
  assert.ok(existsSync(join(outside, 'precious')));
});
