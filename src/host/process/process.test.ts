// runs: own process
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { silentLogger, type Fields, type Logger } from '../../lib/logger.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { ensureDataDirectories } from './data-directories.ts';
import { applyKernelSettings, applyOomScoreAdj, checkSwap, KERNEL_SETTINGS, swapDevices } from './host-checks.ts';
import { acquireLockFile, lockContended } from './lock-file.ts';
import { LogLevels } from './log-levels.ts';
import { LogOutput } from './log-output.ts';
import { systemdOf, type SystemdState } from './sd-notify.ts';
import { Watchdog } from './watchdog.ts';
import { until } from '../../../test/harness/until.ts';

const dir = mkdtempSync(join(tmpdir(), 'kubelet-process-'));
after(() => rmSync(dir, { recursive: true }));

function recorder(): { log: Logger; lines: { message: string; fields: Fields | undefined }[] } {
  const lines: { message: string; fields: Fields | undefined }[] = [];
  const add = (message: string, fields?: Fields): void => void lines.push({ message, fields });
  const log: Logger = { ...silentLogger, error: add, warn: add, info: add, child: () => log };
  return { log, lines };
}

const flockTaken = (path: string): boolean => spawnSync('flock', ['--nonblock', path, 'true']).status === 1;

test('the lock keeps other processes out and goes when released', async () => {
  const path = join(dir, 'lock');
  const stop = new AbortController();
  const lock = await acquireLockFile(path, systemClock, silentLogger, stop.signal);
  assert.equal(flockTaken(path), true);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  lock.release();
  assert.equal(flockTaken(path), false);
});

test('a lock that another process holds is waited for', { timeout: 60_000 }, async () => {
  const path = join(dir, 'held');
  const holder = spawn('flock', [path, 'sh', '-c', 'echo held; sleep 60'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  await new Promise((resolve) => holder.stdout.once('data', resolve));
  const { log, lines } = recorder();
  const waiting = acquireLockFile(path, systemClock, log, new AbortController().signal);
  await until('it says what it waits for', () => lines.length > 0);
  assert.equal(lines[0]?.message, 'the lock file is held by another process, waiting');
  process.kill(-(holder.pid ?? 0));
  (await waiting).release();
});

test('waiting for a lock ends with the signal', async () => {
  const path = join(dir, 'given-up');
  const first = await acquireLockFile(path, systemClock, silentLogger, new AbortController().signal);
  const stop = new AbortController();
  const second = acquireLockFile(path, systemClock, silentLogger, stop.signal);
  stop.abort(new Error('enough'));
  await assert.rejects(second, /enough/);
  first.release();
  await assert.rejects(
    acquireLockFile('/no/such/dir/lock', systemClock, silentLogger, stop.signal),
    /unable to acquire file lock/,
  );
});

test('whoever opens the lock file is noticed', { timeout: 60_000 }, async () => {
  const path = join(dir, 'contended');
  writeFileSync(path, '');
  const contended = lockContended(path, systemClock, new AbortController().signal);
  closeSync(openSync(path, 'r'));
  assert.equal(await contended, true);
  const stop = new AbortController();
  const quiet = lockContended(path, systemClock, stop.signal);
  stop.abort();
  assert.equal(await quiet, false);
});

const RECEIVER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = sys.argv[1]
s.bind('\\0' + name[1:] if name.startswith('@') else name)
s.settimeout(60)
print('bound', flush=True)
for _ in range(2): print(s.recv(100).decode(), flush=True)
`;
const python = spawnSync('python3', ['--version']).status === 0;

test(
  'systemd hears through a path and through an abstract name',
  { skip: python ? false : 'needs python3', timeout: 60_000 },
  async () => {
    for (const name of [join(dir, 'notify'), `@kubelet-test-${process.pid}`]) {
      const receiver = spawn('python3', ['-c', RECEIVER, name], { stdio: ['ignore', 'pipe', 'inherit'] });
      let heard = '';
      receiver.stdout.on('data', (data: Buffer) => (heard += data.toString()));
      await new Promise((resolve) => receiver.stdout.once('data', resolve));
      const systemd = systemdOf({ NOTIFY_SOCKET: name, WATCHDOG_USEC: '30000000' }, process.pid, silentLogger);
      assert.equal(systemd.watchdogMs, 30_000);
      systemd.notify('READY=1');
      systemd.notify('STOPPING=1');
      await new Promise((resolve) => receiver.once('close', resolve));
      assert.equal(heard, 'bound\nREADY=1\nSTOPPING=1\n');
    }
  },
);

test('without systemd nothing is said, and a dead socket is only logged', () => {
  const { log, lines } = recorder();
  systemdOf({}, 1, log).notify('READY=1');
  assert.equal(lines.length, 0);
  systemdOf({ NOTIFY_SOCKET: join(dir, 'nobody') }, 1, log).notify('READY=1');
  assert.equal(lines[0]?.message, 'could not tell systemd');
  assert.equal(systemdOf({ NOTIFY_SOCKET: 'x', WATCHDOG_USEC: '5', WATCHDOG_PID: '2' }, 1, log).watchdogMs, undefined);
});

test('the watchdog speaks at half the interval while all is well', async () => {
  const clock = new ManualClock();
  const said: SystemdState[] = [];
  let failing: string | undefined;
  const systemd = { notify: (state: SystemdState) => void said.push(state), watchdogMs: 20_000 };
  const { log, lines } = recorder();
  const watchdog = new Watchdog({ systemd, failing: () => failing, clock, log }, { intervalMs: 20_000 });
  const stop = new AbortController();
  const done = watchdog.run(stop.signal);
  await clock.advance(10_000);
  assert.equal(said.length, 2);
  assert.deepEqual(lines, [{ message: 'Starting systemd watchdog with interval', fields: { interval: '10s' } }]);
  failing = 'syncloop';
  await clock.advance(30_000);
  assert.equal(said.length, 2);
  failing = undefined;
  await clock.advance(20_000);
  assert.ok(said.length > 2);
  stop.abort();
  await done;
  assert.throws(
    () => new Watchdog({ systemd, failing: () => undefined, clock, log: silentLogger }, { intervalMs: 1000 }),
    /configure watchdog timeout too small/,
  );
});

test('swap', () => {
  const header = 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n';
  assert.deepEqual(swapDevices(header), []);
  assert.deepEqual(swapDevices(`${header}/dev/sda2 partition 1 0 -2\n`), ['/dev/sda2']);
  const path = join(dir, 'swaps');
  writeFileSync(path, `${header}/swapfile file 1 0 -2\n`);
  assert.throws(() => checkSwap(true, silentLogger, path), /running with swap on is not supported.*\/swapfile/);
  checkSwap(false, silentLogger, path);
  checkSwap(true, silentLogger, join(dir, 'no-such-file'));
});

test('kernel settings are changed, refused or only reported', () => {
  const fake = (values: Record<string, number>): string => {
    const root = mkdtempSync(join(dir, 'sys-'));
    mkdirSync(join(root, 'vm'));
    mkdirSync(join(root, 'kernel/keys'), { recursive: true });
    for (const [name, value] of Object.entries({ ...KERNEL_SETTINGS, ...values }))
      writeFileSync(join(root, name), `${value}\n`);
    return root;
  };
  const panic = (root: string): string => readFileSync(join(root, 'kernel/panic'), 'utf8').trim();
  const changed = fake({ 'kernel/panic': 0 });
  applyKernelSettings({ protect: false, onlyReport: false }, silentLogger, changed);
  assert.equal(panic(changed), '10');
  const refused = fake({ 'kernel/panic': 0, 'vm/overcommit_memory': 0 });
  assert.throws(
    () => applyKernelSettings({ protect: true, onlyReport: false }, silentLogger, refused),
    /\[invalid kernel flag: vm\/overcommit_memory, expected value: 1, actual value: 0, invalid kernel flag: kernel\/panic, expected value: 10, actual value: 0\]/,
  );
  const reported = fake({ 'kernel/panic': 0 });
  applyKernelSettings({ protect: false, onlyReport: true }, silentLogger, reported);
  assert.equal(panic(reported), '0');
  assert.throws(
    () => applyKernelSettings({ protect: false, onlyReport: false }, silentLogger, join(dir, 'nowhere')),
    /kernel flag vm\/overcommit_memory/,
  );
});

test('data directories have their modes whatever the umask', () => {
  const before = process.umask(0o077);
  try {
    const root = join(dir, 'root');
    const dirs = ensureDataDirectories(root, join(dir, 'pod-logs'), silentLogger, join(dir, 'container-logs'));
    for (const path of [root, dirs.pods, dirs.plugins, dirs.pluginsRegistry, dirs.podResources])
      assert.equal(statSync(path).mode & 0o777, 0o750, path);
    assert.equal(statSync(dirs.checkpoints).mode & 0o777, 0o700);
    assert.equal(statSync(join(dir, 'pod-logs')).mode & 0o777, 0o750);
    assert.equal(statSync(join(dir, 'container-logs')).mode & 0o777, 0o755);
    ensureDataDirectories(root, join(dir, 'pod-logs'), silentLogger, join(dir, 'container-logs'));
  } finally {
    process.umask(before);
  }
  writeFileSync(join(dir, 'file'), '');
  for (const [root, podLogs] of [
    [join(dir, 'file'), dir],
    [join(dir, 'root'), join(dir, 'file', 'pod-logs')],
  ] as const)
    assert.throws(() => ensureDataDirectories(root, podLogs, silentLogger, dir), /error creating directory .*\/file/);
});

test('a directory that pods can run without is logged where it cannot be made', () => {
  const { log, lines } = recorder();
  const root = join(dir, 'partly');
  mkdirSync(root);
  writeFileSync(join(root, 'plugins'), '');
  const dirs = ensureDataDirectories(root, join(dir, 'pod-logs'), log, join(dir, 'container-logs'));
  assert.ok(statSync(dirs.podResources).isDirectory());
  assert.deepEqual(lines.length, 1);
});

test('an oom score that cannot be set is only logged', () => {
  const { log, lines } = recorder();
  applyOomScoreAdj(5, log, join(dir, 'oom'));
  assert.equal(readFileSync(join(dir, 'oom'), 'utf8'), '5');
  applyOomScoreAdj(5, log, join(dir, 'no/such/file'));
  assert.equal(lines.length, 1);
});

test('levels per component', () => {
  const levels = new LogLevels(1, [
    { filePattern: 'pod_*', verbosity: 5 },
    { filePattern: 'a.c', verbosity: 3 },
  ]);
  assert.deepEqual(['pod-worker', 'server', 'a.c', 'abc', ''].map(levels.of), [5, 1, 3, 1, 1]);
  levels.setVerbosity(2);
  assert.deepEqual(['pod-worker', 'server'].map(levels.of), [5, 2]);
  levels.set(0, []);
  assert.equal(levels.of('pod-worker'), 0);
});

const options = { format: 'text', splitStream: false, infoBufferBytes: 0, pid: 7 } as const;
const line = (severity: 'I' | 'E', message: string) => ({ severity, level: 0, atMs: 0, message, fields: {} });

test('lines go to standard error, or apart when streams are split', () => {
  const wrote: [number, string][] = [];
  const write = (fd: number, data: Buffer): number => {
    wrote.push([fd, data.toString()]);
    return data.length;
  };
  const both = new LogOutput(new ManualClock(), options, write);
  both.write(line('I', 'a'));
  both.write(line('E', 'b'));
  assert.deepEqual(
    wrote.map(([fd]) => fd),
    [2, 2],
  );
  wrote.length = 0;
  const split = new LogOutput(
    new ManualClock(),
    { ...options, format: 'json', splitStream: true, infoBufferBytes: 150 },
    write,
  );
  split.write(line('I', 'a'));
  split.write(line('E', 'b'));
  assert.deepEqual(
    wrote.map(([fd]) => fd),
    [2],
    'information waits for its buffer',
  );
  split.flush();
  assert.deepEqual(
    wrote.map(([fd]) => fd),
    [2, 1],
  );
  assert.match(wrote[1]?.[1] ?? '', /"msg":"a"/);
});

test('a reader that stalls costs lines, not the process', async () => {
  const clock = new ManualClock();
  let open = false;
  let asked = 0;
  const parts: Buffer[] = [];
  const write = (_fd: number, data: Buffer): number => {
    asked++;
    if (!open) throw Object.assign(new Error('busy'), { code: 'EAGAIN' });
    // Cuts lines, and characters, in the middle.
    parts.push(data.subarray(0, 10_001));
    return Math.min(data.length, 10_001);
  };
  const output = new LogOutput(clock, options, write);
  const message = 'ü'.repeat(500);
  for (let i = 0; i < 6000; i++) output.write(line('I', message));
  assert.equal(asked, 1, 'not once per line');
  await clock.advance(5000);
  assert.equal(output.stuckForMs(), 5000);
  open = true;
  output.write(line('I', 'the reader is back'));
  assert.equal(output.stuckForMs(), 0);
  const text = Buffer.concat(parts).toString();
  const lost = Number(/\((\d+) log lines lost: nobody read them in time\)\n$/.exec(text)?.[1]);
  assert.equal(text.split(message).length - 1, 6001 - lost);
  const closed = new LogOutput(clock, options, () => {
    throw Object.assign(new Error('gone'), { code: 'EPIPE' });
  });
  closed.write(line('E', 'nobody hears'));
  assert.equal(closed.stuckForMs(), 0);
});
