import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { until } from '../../test/harness/until.ts';
import { containerId } from '../core/ids.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { LogRotation, removeContainerLogs, type LogRotationDeps } from './rotation.ts';
import { nextLookMs, planRotated, rotatedName } from './rotation-plan.ts';

const root = mkdtempSync(join(tmpdir(), 'rotation-'));
after(() => rmSync(root, { recursive: true, force: true }));

it('follows a limit that changes while it runs', async () => {
  const clock = new ManualClock();
  const stopper = new AbortController();
  let looks = 0;
  const opts = { maxSizeBytes: -1, maxFiles: 2, intervalMs: 1000, workers: 1 };
  const rotation = new LogRotation(
    { clock, log: silentLogger, runningLogs: () => (looks++, []), reopen: async () => undefined },
    opts,
  );
  const running = rotation.run(stopper.signal);
  await clock.advance(3000);
  assert.equal(looks, 0, 'switched off');
  opts.maxSizeBytes = 100;
  await clock.advance(1000);
  assert.equal(looks, 1);
  stopper.abort();
  await running;
});

describe('the name of a rotated log', () => {
  it('after a clock that went far back is one that is not taken', () => {
    const nowMs = Date.UTC(2026, 0, 1);
    const [hour, next] = [rotatedName('a.log', [], nowMs + 3600_000), rotatedName('a.log', [], nowMs + 3601_000)];
    assert.equal(rotatedName('a.log', ['a.log.20991231-000000'], nowMs), hour);
    assert.equal(rotatedName('a.log', [`${hour}.gz`, 'a.log.20991231-000000'], nowMs), next);
  });
});

describe('which rotated files go', () => {
  const of = (...names: string[]) => names.map((n) => `/l/0.log.${n}`);
  type Names = readonly string[];
  type Row = readonly [string, Names, number, boolean, Names, Names, Names?];
  const rows = [
    ['nothing', [], 5, true, [], []],
    ['the last one is compressed when another comes', of('20260101-000000'), 5, true, [], of('20260101-000000')],
    ['the last one stays plain otherwise', of('20260101-000000'), 5, false, [], []],
    [
      'the oldest go',
      of('20260101-000000.gz', '20260102-000000.gz', '20260103-000000.gz', '20260104-000000'),
      5,
      true,
      of('20260101-000000.gz'),
      of('20260104-000000'),
    ],
    ['two files are the current one and one more', of('20260101-000000'), 2, true, of('20260101-000000'), []],
    [
      'leftovers',
      of('20260101-000000', '20260101-000000.gz', '20260102-000000.tmp'),
      5,
      true,
      [],
      [],
      of('20260101-000000', '20260102-000000.tmp'),
    ],
    ['what is not ours', of('old', '2026'), 5, true, [], []],
  ] as readonly Row[];
  for (const [name, siblings, maxFiles, rotating, excess, compress, leftovers = []] of rows)
    it(name, () =>
      assert.deepEqual(planRotated('/l/0.log', siblings, maxFiles, rotating), { leftovers, excess, compress }),
    );

  it('names sort by time', () => {
    const now = Date.now();
    const first = rotatedName('/l/0.log', [], now);
    assert.match(first, /^\/l\/0\.log\.\d{8}-\d{6}$/);
    const second = rotatedName('/l/0.log', [first], now);
    const third = rotatedName('/l/0.log', [`${first}.gz`, second], now);
    assert.ok(first < second && second < third, `${first} ${second} ${third}`);
  });

  it('looks sooner at a log that grows fast', () => {
    assert.equal(nextLookMs([], 100, 10_000), 10_000);
    assert.equal(nextLookMs([{ size: 0, bytesPerMs: 0.001 }], 100, 10_000), 10_000);
    assert.equal(nextLookMs([{ size: 40, bytesPerMs: 0.02 }], 100, 10_000), 3000);
    assert.equal(nextLookMs([{ size: 99, bytesPerMs: 10 }], 100, 10_000), 1000);
  });
});

describe('rotation', () => {
  let count = 0;
  function setup(reopen?: LogRotationDeps['reopen'], maxFiles = 3) {
    const directory = join(root, String(count++));
    const logPath = join(directory, 'c', '0.log');
    const id = containerId('id1');
    rmSync(directory, { recursive: true, force: true });
    const files = () => readdirSync(join(directory, 'c')).sort();
    const open: LogRotationDeps['reopen'] = (_id, _signal) => {
      appendFileSync(logPath, '');
      return Promise.resolve();
    };
    const rotation = new LogRotation(
      { clock: systemClock, log: silentLogger, runningLogs: () => [{ id, logPath }], reopen: reopen ?? open },
      { maxSizeBytes: 10, maxFiles, intervalMs: 20, workers: 2 },
    );
    return { logPath, files, rotation, directory };
  }
  const make = async (path: string, text: string): Promise<void> => {
    const { mkdir } = await import('node:fs/promises');
    await mkdir(join(path, '..'), { recursive: true });
    writeFileSync(path, text, { mode: 0o640 });
  };
  const signal = new AbortController().signal;

  it('leaves small logs alone, moves full ones away, compresses the one before, keeps the number', async () => {
    const { logPath, files, rotation } = setup();
    await make(logPath, 'small');
    await rotation.pass(signal);
    assert.deepEqual(files(), ['0.log']);
    const contents: string[] = [];
    for (let round = 0; round < 4; round++) {
      const text = `round ${round} is long enough`;
      contents.push(text);
      writeFileSync(logPath, text);
      await rotation.pass(signal);
      assert.equal(readFileSync(logPath, 'utf8'), '');
    }
    const stopper = new AbortController();
    const running = rotation.run(stopper.signal);
    await until('one is compressed', () => files().filter((f) => f.endsWith('.gz')).length === 1);
    stopper.abort();
    await running;
    const [current, packed = '', plain = '', ...more] = files();
    assert.equal(current, '0.log');
    assert.deepEqual(more, []);
    assert.ok(packed.endsWith('.gz'));
    assert.equal(gunzipSync(readFileSync(join(logPath, '..', packed))).toString(), contents[2]);
    assert.equal(readFileSync(join(logPath, '..', plain), 'utf8'), contents[3]);
    assert.equal(statSync(join(logPath, '..', packed)).mode & 0o777, 0o644 & ~process.umask());
  });

  it('puts the log back when the runtime cannot open a new one', async () => {
    const { logPath, files, rotation } = setup(() => Promise.reject(new Error('no')));
    await make(logPath, 'long enough to rotate');
    await rotation.pass(signal);
    assert.deepEqual(files(), ['0.log']);
    assert.equal(readFileSync(logPath, 'utf8'), 'long enough to rotate');
  });

  it('never puts the old log over a new one', async () => {
    const made = setup(() => {
      writeFileSync(made.logPath, 'new');
      return Promise.reject(new Error('too late'));
    });
    await make(made.logPath, 'long enough to rotate');
    await made.rotation.pass(signal);
    assert.equal(readFileSync(made.logPath, 'utf8'), 'new');
    assert.equal(made.files().length, 2);
  });

  it('has a missing log opened again', async () => {
    const opened: string[] = [];
    const { rotation } = setup((id) => {
      opened.push(id);
      return Promise.resolve();
    });
    await rotation.pass(signal);
    assert.deepEqual(opened, ['id1']);
  });

  it('follows no link that a pod planted', async () => {
    const { logPath, files, rotation, directory } = setup(undefined, 5);
    await make(logPath, 'long enough to rotate');
    const secret = join(directory, 'secret');
    writeFileSync(secret, 'a secret of the node');
    symlinkSync(secret, `${logPath}.20200101-000000`);
    symlinkSync(secret, `${logPath}.20200101-000001.tmp`);
    execFileSync('mkfifo', [`${logPath}.20200101-000002`]);
    writeFileSync(`${logPath}.20200101-000003`, 'an older part of the log');
    const stopper = new AbortController();
    await rotation.pass(stopper.signal);
    const running = rotation.run(stopper.signal);
    await until('the older part is packed', () => files().includes('0.log.20200101-000003.gz'));
    stopper.abort();
    await running;
    assert.equal(readFileSync(secret, 'utf8'), 'a secret of the node');
    for (const name of files().filter((f) => f.endsWith('.gz')))
      assert.equal(gunzipSync(readFileSync(join(logPath, '..', name))).toString(), 'an older part of the log');
  });

  it('enters no directory that is a link', async () => {
    const { logPath, rotation, directory } = setup();
    const elsewhere = join(directory, 'elsewhere');
    await make(join(elsewhere, '0.log'), 'long enough to rotate');
    symlinkSync(elsewhere, join(directory, 'c'));
    await rotation.pass(signal);
    await removeContainerLogs(logPath, signal);
    assert.deepEqual(readdirSync(elsewhere), ['0.log']);
  });

  it('a log that is no file is left alone', async () => {
    const { logPath, files, rotation, directory } = setup();
    mkdirSync(join(directory, 'c'), { recursive: true });
    writeFileSync(join(directory, 'big'), 'long enough to rotate');
    symlinkSync(join(directory, 'big'), logPath);
    await rotation.pass(signal);
    assert.deepEqual(files(), ['0.log']);
  });

  it('removes all of a container', async () => {
    const { logPath, files } = setup();
    await make(logPath, 'x');
    for (const end of ['.20260101-000000.gz', '.20260101-000001', '.tmp']) writeFileSync(logPath + end, 'x');
    mkdirSync(`${logPath}.directory`);
    writeFileSync(Buffer.concat([Buffer.from(`${logPath}.`), Buffer.from([0xe9])]), 'a name that is not UTF-8');
    writeFileSync(join(logPath, '..', '10.log'), 'other');
    await removeContainerLogs(logPath, signal);
    assert.deepEqual(files(), ['10.log']);
    await removeContainerLogs(join(root, 'nowhere', '0.log'), signal);
  });
});
