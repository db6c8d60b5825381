// NFS volumes with a scripted mount(8): this kernel has no NFS client. The mounts themselves are real (a tmpfs, or a file
// system whose server can be stopped), so that unmounting, hanging and adopting are real too.
// runs: gate
// shows: volumes: NFS, iSCSI, fibre channel
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { Pod, Volume } from '../../src/core/pod.ts';
import type { ChildResult } from '../../src/host/mounts/child.ts';
import { ChildCommands, type HostCommands } from '../../src/host/mounts/commands.ts';
import { HostMounter } from '../../src/host/mounts/mounter.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { KubeletError } from '../../src/lib/errors.ts';
import { Bench, mountsBeneath, podNamed } from './volumes-setup.ts';
import { until } from '../harness/until.ts';

const noFuse = existsSync('/dev/fuse') ? false : 'this machine has no /dev/fuse';

/** Stands for the host's mount(8): records the command and mounts something else. */
class ScriptedMount implements HostCommands {
  readonly ran: string[] = [];
  readonly #real = new ChildCommands({ clock: systemClock });
  answer: (target: string, signal: AbortSignal) => Promise<ChildResult> = (target, signal) =>
    this.#real.run('mount', ['-t', 'tmpfs', 'tmpfs', target], signal);

  run(command: string, args: readonly string[], signal: AbortSignal): Promise<ChildResult> {
    this.ran.push([command, ...args].join(' '));
    return this.answer(args.at(-1) ?? '', signal);
  }
}

let bench: Bench;
let commands: ScriptedMount;
const servers: ChildProcess[] = [];
beforeEach(() => {
  bench = new Bench();
  commands = new ScriptedMount();
});
afterEach(() => {
  for (const server of servers.splice(0)) server.kill('SIGKILL');
  assert.deepEqual(bench.dispose(), [], 'nothing is left mounted');
});

const podWith = (name: string, volume: Volume): Pod =>
  podNamed(name, {
    volumes: [volume],
    containers: [{ name: 'c', volumeMounts: [{ name: volume.name, mountPath: '/v' }] }],
  });
const nfs = (server: string, readOnly?: boolean): Volume => ({
  name: 'share',
  nfs: { server, path: '/export', ...(readOnly === undefined ? {} : { readOnly }) },
});
const targetOf = (name: string): string => join(bench.root, `pods/uid-${name}/volumes/kubernetes.io~nfs/share`);

test('mounted per pod by mount(8), adopted after a restart, unmounted and removed', async () => {
  const { manager } = bench.open({ commands });
  const [a, b, c] = [
    podWith('a', nfs('files.example')),
    podWith('b', nfs('fd00::1', true)),
    podWith('c', nfs('192.0.2.1')),
  ];
  for (const pod of [a, b, c]) await manager.waitMounted(pod, bench.signal);
  assert.deepEqual(commands.ran, [
    `mount -t nfs -- files.example:/export ${targetOf('a')}`,
    `mount -t nfs -o ro -- [fd00::1]:/export ${targetOf('b')}`,
    `mount -t nfs -- 192.0.2.1:/export ${targetOf('c')}`,
  ]);
  assert.deepEqual(manager.mountsOf('uid-b').get('share'), {
    hostPath: targetOf('b'),
    readOnly: true,
    selinuxRelabel: false,
  });
  assert.equal(statSync(join(targetOf('a'), '..')).mode & 0o7777, 0o750);
  writeFileSync(join(targetOf('a'), 'file'), 'x');
  const again = bench.open({ commands });
  await again.manager.reconstruct(bench.signal);
  await again.manager.waitMounted(a, bench.signal);
  assert.equal(commands.ran.length, 3, 'what is mounted is not mounted again');
  assert.equal(readFileSync(join(targetOf('a'), 'file'), 'utf8'), 'x');
  again.manager.removeUnknown((uid) => uid === 'uid-a');
  again.manager.podRemoved('uid-a');
  for (const uid of ['uid-a', 'uid-b', 'uid-c']) await again.manager.waitUnmounted(uid, bench.signal);
  assert.deepEqual(mountsBeneath(bench.root), []);
  assert.ok(!existsSync(targetOf('a')));
});

test('a mount that fails is told in upstream’s words and leaves nothing', async () => {
  commands.answer = () => Promise.resolve({ code: 32, output: 'mount.nfs: Connection refused' });
  const { manager } = bench.open({ commands });
  manager.setDesired(podWith('p', nfs('dead.example')));
  const { message } = await until('it is told', () => bench.events[0]);
  assert.equal(
    message,
    `MountVolume.SetUp failed for volume "share" : mount failed: exit status 32\nMounting command: mount\n` +
      `Mounting arguments: -t nfs dead.example:/export ${targetOf('p')}\nOutput: mount.nfs: Connection refused\n`,
  );
  await until('nothing is left', () => !existsSync(targetOf('p')));
  manager.podRemoved('uid-p');
  await manager.waitUnmounted('uid-p', bench.signal);
});

test('a server that would be an option of mount(8) is refused before anything runs', async () => {
  const { manager } = bench.open({ commands });
  manager.setDesired(podWith('p', nfs('-T/tmp/fstab')));
  const { message } = await until('it is told', () => bench.events[0]);
  assert.equal(message, 'MountVolume.SetUp failed for volume "share" : "-T/tmp/fstab" is not the name of a server');
  assert.deepEqual(commands.ran, []);
  manager.podRemoved('uid-p');
  await manager.waitUnmounted('uid-p', bench.signal);
});

test('a server that does not answer holds up its own pods only, however many', async () => {
  const over = Promise.withResolvers<never>();
  commands.answer = (target, signal) =>
    target.includes('uid-stuck')
      ? over.promise
      : new ChildCommands({ clock: systemClock }).run('mount', ['-t', 'tmpfs', 'tmpfs', target], signal);
  const { manager } = bench.open({ commands });
  for (let i = 0; i < 8; i++) manager.setDesired(podWith(`stuck-${i}`, nfs('dead.example')));
  // None of the others' mounts ends before these are there.
  await manager.waitMounted(podWith('fine', nfs('files.example')), bench.signal);
  await manager.waitMounted(podWith('memory', { name: 'm', emptyDir: { medium: 'Memory' } }), bench.signal);
  assert.match(
    manager.blockedOn('uid-stuck-0') ?? '',
    /^waiting for volume "share": mounting dead.example:\/export \(for \d+s\)$/,
  );
  over.reject(new KubeletError('deadline', 'mount did not end within 600ms'));
  for (const name of [...Array.from({ length: 8 }, (_, i) => `stuck-${i}`), 'fine', 'memory']) {
    manager.podRemoved(`uid-${name}`);
    await manager.waitUnmounted(`uid-${name}`, bench.signal);
  }
});

test(
  'a server that dies under a running pod: the pod goes by force, whoever waits in it is let go',
  { skip: noFuse },
  async () => {
    let server: ChildProcess | undefined;
    commands.answer = async (target) => {
      server = spawn(
        process.execPath,
        ['--no-warnings', join(import.meta.dirname, 'volumes-fuse-server.ts'), target, 'answers'],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      );
      servers.push(server);
      const { stdout } = server;
      await new Promise((resolve) => stdout?.once('data', resolve));
      return { code: 0, output: '' };
    };
    const mounter = new HostMounter({ clock: systemClock }, { rootDir: bench.root, childTimeoutMs: 300 });
    const { manager } = bench.open({ commands, mounter });
    await manager.waitMounted(podWith('p', nfs('files.example')), bench.signal);
    // Somebody waits in it, as a container's process would.
    server?.kill('SIGSTOP');
    const waiting = spawn('stat', [join(targetOf('p'), 'sub')], { stdio: 'ignore' });
    const ended = new Promise((resolve) => waiting.once('exit', resolve));
    const fine = podWith('fine', { name: 'm', emptyDir: {} });
    await manager.waitMounted(fine, bench.signal);
    manager.podRemoved('uid-p');
    await manager.waitUnmounted('uid-p', bench.signal);
    assert.deepEqual(mountsBeneath(bench.root), []);
    await ended;
    manager.podRemoved('uid-fine');
    await manager.waitUnmounted('uid-fine', bench.signal);
  },
);
