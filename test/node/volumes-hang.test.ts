// A filesystem that does not answer: a real FUSE mount whose server sleeps, and a mounter that never returns. Other pods
// must not notice, the pod's events must say what is wrong, and everything must recover.
import assert from 'node:assert/strict';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { Container, Pod, Volume } from '../../src/core/pod.ts';
import { HostMounter } from '../../src/host/mounts/mounter.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { ManualClock } from '../../src/lib/manual-clock.ts';
import { Bench, mountsBeneath, podNamed } from './volumes-setup.ts';
import { until, untilSeen } from '../harness/until.ts';

let bench: Bench;
beforeEach(() => void (bench = new Bench()));
afterEach(() => {
  for (const server of servers.splice(0)) server.kill('SIGKILL');
  assert.deepEqual(bench.dispose(), [], 'nothing is left mounted');
});
const servers: ChildProcess[] = [];

const noFuse = existsSync('/dev/fuse') ? false : 'this machine has no /dev/fuse';

const hungAt = (target: string): Promise<ChildProcess> => servedAt(target, 'silent');

async function servedAt(target: string, mode = 'answers'): Promise<ChildProcess> {
  mkdirSync(target, { recursive: true });
  const script = join(import.meta.dirname, 'volumes-fuse-server.ts');
  const server = spawn(process.execPath, ['--no-warnings', script, target, mode], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  servers.push(server);
  await new Promise((resolve) => server.stdout.once('data', resolve));
  return server;
}

async function revive(server: ChildProcess, target: string): Promise<void> {
  const gone = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGKILL');
  await gone;
  execFileSync('umount', ['-l', target]);
}

const podWith = (name: string, volume: Volume, subPath?: string): Pod =>
  podNamed(name, {
    volumes: [volume],
    containers: [
      {
        name: 'c',
        volumeMounts: [{ name: volume.name, mountPath: '/v', ...(subPath === undefined ? {} : { subPath }) }],
      },
    ],
  });
const only = (pod: Pod): Container => pod.spec.containers[0] ?? { name: 'c' };

test('a dead host path holds up its own pod only, is named, and heals', { skip: noFuse }, async () => {
  const dead = join(bench.root, 'dead');
  const server = await hungAt(dead);
  const volumes = bench.open({}, { hostPathTimeoutMs: 3000, waitTimeoutMs: 60_000 });
  const stuck = podWith('stuck', { name: 'h', hostPath: { path: join(dead, 'x'), type: 'DirectoryOrCreate' } });
  const waiting = volumes.manager.waitMounted(stuck, bench.signal);
  const many = Array.from({ length: 8 }, (_, i) => {
    const pod = podWith(`stuck-${i}`, { name: 'h', hostPath: { path: dead, type: 'Directory' } });
    volumes.manager.setDesired(pod);
    return pod;
  });
  const fine = podWith('fine', { name: 'm', emptyDir: { medium: 'Memory' } });
  await volumes.manager.waitMounted(fine, bench.signal);
  assert.deepEqual(bench.events, [], 'another pod did not wait for the first of them to be given up');
  assert.match(
    volumes.manager.blockedOn('uid-stuck') ?? '',
    /^waiting for volume "h": checking that .*dead\/x is a directory \(for \ds\)$/,
  );
  const said = await until('it is named', () => bench.events.find((e) => e.pod === 'stuck'));
  assert.equal(said.reason, 'FailedMount');
  assert.match(said?.message ?? '', /^MountVolume.SetUp failed for volume "h" : .*dead\/x did not answer within 3s$/);
  for (const pod of many) {
    volumes.manager.podRemoved(pod.metadata.uid ?? '');
    await volumes.manager.waitUnmounted(pod.metadata.uid ?? '', bench.signal);
  }
  await revive(server, dead);
  await waiting;
  assert.ok(existsSync(join(dead, 'x')), 'mounted once the filesystem answers');
  for (const uid of ['uid-stuck', 'uid-fine']) {
    volumes.manager.podRemoved(uid);
    await volumes.manager.waitUnmounted(uid, bench.signal);
  }
});

test('a sub path into a dead volume ends at its deadline and can be unmounted', { skip: noFuse }, async () => {
  const base = join(bench.root, 'host');
  mkdirSync(join(base, 'dead'), { recursive: true });
  const volumes = bench.open({}, { subPath: { childTimeoutMs: 5000 } });
  const pod = podWith('sub', { name: 'h', hostPath: { path: base } }, 'dead');
  const server = await hungAt(join(base, 'dead'));
  await volumes.manager.waitMounted(pod, bench.signal);
  let isGivenUp = false;
  const prepared = assert
    .rejects(volumes.manager.prepareSubPath(pod, only(pod), 0, 'dead/inner', bench.signal), /did not answer within 5s/)
    .finally(() => (isGivenUp = true));
  const fine = podWith('fine', { name: 'e', emptyDir: {} }, 'a/b');
  await volumes.manager.waitMounted(fine, bench.signal);
  await volumes.manager.prepareSubPath(fine, only(fine), 0, 'a/b', bench.signal);
  assert.equal(isGivenUp, false, 'a sub path of another pod does not wait for it');
  await prepared;
  await revive(server, join(base, 'dead'));
  const at = await volumes.manager.prepareSubPath(pod, only(pod), 0, 'dead/inner', bench.signal);
  assert.ok(existsSync(at));
  assert.ok(existsSync(join(base, 'dead/inner')));
  for (const uid of ['uid-sub', 'uid-fine']) {
    volumes.manager.podRemoved(uid);
    await volumes.manager.waitUnmounted(uid, bench.signal);
  }
  assert.deepEqual(mountsBeneath(volumes.layout.podsDir), []);
});

test(
  'a filesystem that stops under a running pod: others go on, the pod can go, and it heals',
  { skip: noFuse },
  async () => {
    const served = join(bench.root, 'served');
    const server = await servedAt(served);
    const mounter = new HostMounter({ clock: systemClock }, { childTimeoutMs: 3000 });
    const volumes = bench.open({ mounter }, { hostPathTimeoutMs: 3000, subPath: { childTimeoutMs: 5000 } });
    const bind = (pod: Pod): Promise<string> => volumes.manager.prepareSubPath(pod, only(pod), 0, 'sub', bench.signal);
    const source = { name: 'h', hostPath: { path: served, type: 'Directory' } };
    const before = podWith('before', source, 'sub');
    await volumes.manager.waitMounted(before, bench.signal);
    const bound = await bind(before);
    assert.ok(mountsBeneath(bench.root).includes(bound));
    server.kill('SIGSTOP');
    await assert.rejects(bind(before), /did not answer within 5s/, 'a restart of its container says why it waits');
    const during = podWith('during', source, 'sub');
    const waiting = volumes.manager.waitMounted(during, bench.signal);
    const fine = podWith('fine', { name: 'e', emptyDir: {} }, 'x');
    await volumes.manager.waitMounted(fine, bench.signal);
    await volumes.manager.prepareSubPath(fine, only(fine), 0, 'x', bench.signal);
    assert.deepEqual(bench.events, [], 'another pod did not wait for this one to be given up');
    volumes.manager.podRemoved('uid-before');
    await volumes.manager.waitUnmounted('uid-before', bench.signal);
    assert.deepEqual(
      mountsBeneath(volumes.layout.podDir('uid-before')),
      [],
      'the pod goes although its volume is dead',
    );
    server.kill('SIGCONT');
    await waiting;
    assert.ok(existsSync(await bind(during)));
    for (const uid of ['uid-during', 'uid-fine']) {
      volumes.manager.podRemoved(uid);
      await volumes.manager.waitUnmounted(uid, bench.signal);
    }
    await revive(server, served);
  },
);

test('sub paths of a foreign filesystem are prepared by a child, by the same rules', { skip: noFuse }, async () => {
  const elsewhere = join(bench.root, 'elsewhere');
  const server = await hungAt(elsewhere);
  const host = join(bench.root, 'host');
  mkdirSync(join(host, 'd'), { recursive: true });
  const volumes = bench.open();
  const pod = podWith('child', { name: 'h', hostPath: { path: host } }, 'd');
  await volumes.manager.waitMounted(pod, bench.signal);
  const at = await volumes.manager.prepareSubPath(pod, only(pod), 0, 'd/new', bench.signal);
  assert.ok(existsSync(join(host, 'd/new')) && mountsBeneath(bench.root).includes(at));
  execFileSync('ln', ['-s', '/etc', join(host, 'link')]);
  await assert.rejects(volumes.manager.prepareSubPath(pod, only(pod), 0, 'link/x', bench.signal), {
    message: 'failed to prepare subPath for volumeMount "h" of container "c"',
  });
  volumes.manager.podRemoved('uid-child');
  await volumes.manager.waitUnmounted('uid-child', bench.signal);
  await revive(server, elsewhere);
});

test('a mount that ignores even its deadline is reported and abandoned to itself', async () => {
  class StuckMounter extends HostMounter {
    release: (() => void) | undefined;
    override tmpfs(): Promise<void> {
      return new Promise((resolve) => (this.release = resolve));
    }
  }
  const clock = new ManualClock();
  const mounter = new StuckMounter({ clock: systemClock });
  const volumes = bench.open({ mounter, clock }, { stepTimeoutMs: 50, waitTimeoutMs: 200 });
  const pod = podWith('stuck', { name: 'm', emptyDir: { medium: 'Memory' } });
  const refused = assert.rejects(volumes.manager.waitMounted(pod, bench.signal), /volume "m": mounting \(for 0s\)/);
  await untilSeen(
    'the mount is under way',
    () => mounter.release,
    (seen) => seen !== undefined,
  );
  await clock.advance(200);
  await refused;
  const other = podWith('other', { name: 'e', emptyDir: {} });
  await volumes.manager.waitMounted(other, bench.signal);
  volumes.manager.podRemoved('uid-stuck');
  const unmounted = volumes.manager.waitUnmounted('uid-stuck', bench.signal);
  mounter.release?.();
  await unmounted;
  volumes.manager.podRemoved('uid-other');
  await volumes.manager.waitUnmounted('uid-other', bench.signal);
});
