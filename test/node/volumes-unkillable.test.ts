// A file system whose server takes requests and does not answer: children that ask it cannot be killed. Each question has
// one such child at most, also over many tries, and everything goes on once the server is gone.
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { SafeHostFiles } from '../../src/host/mounts/host-files.ts';
import { hungChildren } from '../../src/host/mounts/hung-children.ts';
import { HostMounter } from '../../src/host/mounts/mounter.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { VolumeLayout } from '../../src/volumes/layout.ts';
import { giveToGroupElsewhere } from '../../src/volumes/ownership-elsewhere.ts';
import { SubPaths, type SubPathRequest } from '../../src/volumes/subpath.ts';
import { removeFolder, temporaryFolder } from '../harness/temporary-folder.ts';
import { untilSeen } from '../harness/until.ts';

const noFuse = existsSync('/dev/fuse') ? false : 'this machine has no /dev/fuse';
const { signal } = new AbortController();
let root: string;
let dead: string;
let server: ChildProcess;

beforeEach(async () => {
  root = temporaryFolder('kts-unkillable-');
  dead = join(root, 'dead');
  mkdirSync(dead);
  const script = join(import.meta.dirname, 'volumes-fuse-server.ts');
  const child = spawn(process.execPath, ['--no-warnings', script, dead, 'silent'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  server = child;
  await new Promise((resolve) => child.stdout.once('data', resolve));
});

afterEach(async () => {
  hungChildren.logTo(silentLogger);
  if (server.exitCode === null && server.signalCode === null) await endServer();
  removeFolder(root);
});

/** Answers all who wait with an error. */
async function endServer(): Promise<void> {
  const gone = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGKILL');
  await gone;
  spawnSync('umount', ['-l', dead]);
}

/** Without the server. The main thread of a child of Node is a zombie, and its file thread waits. */
const children = (): readonly string[] =>
  readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === server.pid) return false;
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === process.pid;
    } catch {
      return false; // it ended meanwhile
    }
  });

const hung = (count: number): Promise<number> =>
  untilSeen(
    'children are known to hang',
    () => hungChildren.count,
    (seen) => seen === count,
  );

const messageOf = (answer: Promise<unknown>): Promise<string> =>
  answer.then(
    (value) => `answered ${String(value)}`,
    (err: unknown) => (err as Error).message,
  );

test('the same question has one child, however often it is asked', { skip: noFuse }, async () => {
  const mounter = new HostMounter({ clock: systemClock });
  const files = new SafeHostFiles({ clock: systemClock, mounter }, { timeoutMs: 200 });
  const path = join(dead, 'x');
  assert.equal(await messageOf(files.kindOf(path, signal)), `${path} did not answer within 200ms`);
  await hung(1);
  const [pid] = children();
  for (let i = 0; i < 20; i++)
    assert.equal(
      await messageOf(files.kindOf(path, signal)),
      `${path} still does not answer: process ${pid}, which waits for it, cannot be killed`,
    );
  assert.deepEqual(children(), [pid]);
  assert.equal(await files.kindOf(root, signal), 'directory', 'other questions have children');
  await endServer();
  await hung(0);
  assert.equal(await files.kindOf(path, signal), 'missing', 'asked again');
  assert.deepEqual(children(), []);
});

test('children of Node: one for the subPaths of a volume, one for its owner', { skip: noFuse }, async () => {
  const mounter = new HostMounter({ clock: systemClock });
  const layout = new VolumeLayout(join(root, 'kubelet'));
  const subPaths = new SubPaths({ layout, mounter, clock: systemClock }, { childTimeoutMs: 3000 });
  const request = (container: string): SubPathRequest => ({
    uid: 'u',
    volume: 'v',
    mountName: 'v',
    container,
    mountIndex: 0,
    volumePath: dead,
    subPath: 'data',
  });
  const prepare = (container: string): Promise<string> => messageOf(subPaths.prepare(request(container), signal));
  const own = (): Promise<string> =>
    messageOf(
      giveToGroupElsewhere(
        systemClock,
        dead,
        { gid: 7, readOnly: false, changePolicy: 'Always' },
        signal,
        () => undefined,
        { idleMs: 3000 },
      ),
    );
  assert.equal(await prepare('a'), `${dead} did not answer within 3s`);
  assert.equal(await own(), `${dead} did not answer within 3s`);
  await hung(2);
  for (const container of ['a', 'b', 'c'])
    assert.match(await prepare(container), /dead still does not answer: process/);
  for (let i = 0; i < 3; i++) assert.match(await own(), /dead still does not answer: process/);
  assert.equal(children().length, 2);
  await endServer();
  await hung(0);
});

test('all of them together have a bound, and unmounting stays possible', { skip: noFuse }, async () => {
  const said: string[] = [];
  hungChildren.logTo({ ...silentLogger, error: (message) => void said.push(message) });
  const mounter = new HostMounter({ clock: systemClock }, { childTimeoutMs: 1000 });
  const files = new SafeHostFiles({ clock: systemClock, mounter }, { timeoutMs: 500 });
  const ask = (i: number): Promise<string> => messageOf(files.kindOf(join(dead, `x${i}`), signal));
  await Promise.all(Array.from({ length: 64 }, (_, i) => ask(i)));
  await hung(64);
  for (const i of [64, 65])
    assert.match(await ask(i), /x\d+ is not looked at: 64 processes wait for file systems that do not answer$/);
  assert.equal(children().length, 64);
  assert.deepEqual(said, ['too many child processes hang, no more are started']);
  await mounter.unmount(dead, { detachIfDead: true, forceIfDead: true }, signal);
  await hung(0);
  assert.deepEqual(children(), []);
});
