// The end of a file: in process and by a child they must agree, and a filesystem that hangs must not hang the caller.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { fileTail, tailByChild, tailInProcess } from './file-tail.ts';
import type { MountTable } from './mount-table.ts';

const dir = mkdtempSync(join(tmpdir(), 'file-tail-'));
after(() => rmSync(dir, { recursive: true, force: true }));
writeFileSync(join(dir, 'plain'), 'said\n');
writeFileSync(join(dir, 'empty'), '');
writeFileSync(join(dir, 'long'), `${'x'.repeat(5000)}end`);
writeFileSync(join(dir, 'bytes'), Buffer.from([0, 255, 10, 32]));
symlinkSync(join(dir, 'plain'), join(dir, 'link'));
mkdirSync(join(dir, 'directory'));
execFileSync('mkfifo', [join(dir, 'pipe')]);
const { signal } = new AbortController();

describe('the end of a file', () => {
  const table: readonly (readonly [string, string | undefined])[] = [
    ['plain', 'said\n'],
    ['empty', ''],
    ['long', `${'x'.repeat(4093)}end`],
    ['bytes', '\u0000ÿ\n '],
    ['link', undefined],
    ['directory', undefined],
    ['pipe', undefined],
    ['missing', undefined],
  ];
  for (const [name, expected] of table)
    for (const [how, tail] of Object.entries({ tailInProcess, tailByChild }))
      it(`${name}, ${how}`, async () =>
        assert.equal((await tail(join(dir, name), 4096, signal))?.toString('latin1'), expected));

  it('on a disk that hangs is given up after five seconds', async () => {
    const clock = new ManualClock();
    const mounter = { table: () => Promise.reject(new Error('not asked')) };
    const hangs = (): Promise<never> => new Promise(() => undefined);
    const tail = fileTail({ clock, mounter, tail: hangs }, { rootDir: dir });
    const reading = assert.rejects(tail(join(dir, 'pods/u/containers/c/abc'), 4096, signal), { kind: 'deadline' });
    await clock.advance(5000);
    await reading;
  });

  it('in the directories of the kubelet is read without a look at the mounts', async () => {
    const asked: string[] = [];
    const mounter = {
      table: () => {
        asked.push('table');
        return Promise.resolve({ hasForeign: true } as MountTable);
      },
    };
    const tail = fileTail({ clock: systemClock, mounter }, { rootDir: dir, timeoutMs: 1000 });
    mkdirSync(join(dir, 'pods/u/containers/c'), { recursive: true });
    writeFileSync(join(dir, 'pods/u/containers/c/abc'), 'own');
    assert.equal(String(await tail(join(dir, 'pods/u/containers/c/abc'), 4096, signal)), 'own');
    assert.deepEqual(asked, []);
    assert.equal(String(await tail(join(dir, 'plain'), 4096, signal)), 'said\n');
    assert.deepEqual(asked, ['table']);
  });
});
