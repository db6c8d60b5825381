import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ManualClock } from '../../lib/manual-clock.ts';
import { MountTable, parseMountInfo, type MountEntry } from './mount-table.ts';
import { diskWritten, whileWritingOut } from './write-out.ts';

const { signal } = new AbortController();
const LINE = '36 25 8:1 / /mnt rw,relatime shared:1 - ext4 /dev/sda1 rw';
const entryOf = (line: string): MountEntry => parseMountInfo(line)[0] ?? assert.fail(line);

type Case = {
  readonly what: string;
  readonly there: boolean;
  readonly written: readonly (string | undefined)[];
  readonly looks: number;
};
const cases: readonly Case[] = [
  { what: 'a mount that stays', there: true, written: ['1', '2', '3'], looks: 1 },
  { what: 'a disk that writes no more', there: false, written: ['1', '1'], looks: 1 },
  { what: 'a disk that writes for a while', there: false, written: ['1', '2', '3', '3'], looks: 3 },
  { what: 'no disk', there: false, written: [undefined, undefined], looks: 1 },
];
for (const { what, there, written, looks } of cases)
  test(`${what} is waited for ${looks} times the limit`, async () => {
    const clock = new ManualClock();
    let asked = 0;
    const table = there ? new MountTable([entryOf(LINE)]) : new MountTable([]);
    const deps = { clock, table: () => Promise.resolve(table), written: () => Promise.resolve(written[asked++]) };
    let stopped: { kind?: string } = {};
    const ended = whileWritingOut(deps, entryOf(LINE), 1000, signal, (own) => {
      const hangs = Promise.withResolvers<never>();
      own.addEventListener('abort', () => hangs.reject(own.reason as Error));
      return hangs.promise;
    }).catch((err: unknown) => void (stopped = err as { kind?: string }));
    await clock.advance(1000 * looks - 1);
    assert.deepEqual(stopped, {});
    await clock.advance(1);
    await ended;
    assert.deepEqual([stopped.kind, clock.pending], ['deadline', 0]);
  });

test('what ends in time is answered, and leaves nothing behind', async () => {
  const clock = new ManualClock();
  for (const written of [() => Promise.resolve('1'), () => Promise.reject(new Error('no sysfs'))]) {
    const deps = { clock, table: () => assert.fail(), written };
    assert.equal(await whileWritingOut(deps, entryOf(LINE), 1000, signal, () => Promise.resolve('done')), 'done');
    assert.equal(clock.pending, 0);
  }
});

test('what ends while the disk is looked at leaves nothing behind', async () => {
  const clock = new ManualClock();
  const [end, looked] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  let asked = 0;
  const written = (): Promise<string> => (asked++ === 0 ? Promise.resolve('1') : looked.promise);
  const deps = { clock, table: () => Promise.resolve(new MountTable([])), written };
  const ended = whileWritingOut(deps, entryOf(LINE), 1000, signal, () => end.promise);
  await clock.advance(1000);
  end.resolve('done');
  assert.equal(await ended, 'done');
  looked.resolve('2');
  await clock.advance(0);
  assert.equal(clock.pending, 0);
});

test('what a disk has written', async () => {
  const sys = mkdtempSync(join(tmpdir(), 'write-out-'));
  try {
    mkdirSync(join(sys, 'dev/block/8:1'), { recursive: true });
    writeFileSync(join(sys, 'dev/block/8:1/stat'), '  10 1 20 3  40 5 60 7  0 9 10  0 0 0 0  16 17\n');
    assert.equal(await diskWritten(entryOf(LINE), sys), '40 60 16');
    assert.equal(await diskWritten(entryOf(LINE.replace('8:1', '8:2')), sys), undefined);
    assert.equal(await diskWritten(entryOf('36 25 0:40 / /mnt rw - nfs4 server:/x rw'), sys), undefined);
  } finally {
    rmSync(sys, { recursive: true });
  }
});
