import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { ManualClock } from '../../lib/manual-clock.ts';
import { EarlierUnmounts } from './earlier-unmounts.ts';

let proc: string;
beforeEach(() => void (proc = mkdtempSync(join(tmpdir(), 'proc-'))));
afterEach(() => rmSync(proc, { recursive: true }));

function process(pid: number, comm: string, target: string, state = 'D', started = 7): void {
  mkdirSync(join(proc, String(pid)), { recursive: true });
  writeFileSync(join(proc, String(pid), 'comm'), `${comm}\n`);
  writeFileSync(join(proc, String(pid), 'cmdline'), [comm, '--no-canonicalize', target, ''].join('\0'));
  const fields = [state, ...Array.from({ length: 18 }, () => '0'), started, 0];
  writeFileSync(join(proc, String(pid), 'stat'), `${pid} (a) b) ${fields.join(' ')}\n`);
}

const never = new AbortController().signal;
/** Files are read in real time: it sleeps when they have been. Ends at the next sleep, or when there will be none. */
async function looksAgain(clock: ManualClock, isOver: () => boolean): Promise<void> {
  await clock.advance(100);
  while (clock.pending === 0 && !isOver()) await new Promise((resolve) => setImmediate(resolve));
}

type Ends = { readonly how: string; readonly end: () => void };
const ends: readonly Ends[] = [
  { how: 'is gone', end: () => rmSync(join(proc, '12'), { recursive: true }) },
  { how: 'is not reaped', end: () => process(12, 'umount', '/a', 'Z') },
  { how: 'gave its number to another', end: () => process(12, 'umount', '/a', 'D', 8) },
];
for (const { how, end } of ends)
  test(`an earlier unmount is waited for until its process ${how}`, async () => {
    const clock = new ManualClock();
    process(12, 'umount', '/a');
    const earlier = new EarlierUnmounts(clock, proc);
    let ended = false;
    const waiting = earlier.ended('/a', never).then(() => (ended = true));
    for (let look = 0; look < 3; look++) await looksAgain(clock, () => ended);
    assert.equal(ended, false);
    end();
    while (!ended) await looksAgain(clock, () => ended);
    await waiting;
    assert.equal(clock.pending, 0);
  });

test('others are not waited for, nor is anybody whose caller gives up', async () => {
  const clock = new ManualClock();
  process(12, 'umount', '/a');
  process(13, 'mount', '/b');
  mkdirSync(join(proc, '14'));
  mkdirSync(join(proc, 'sys'));
  const earlier = new EarlierUnmounts(clock, proc);
  await earlier.ended('/b', never);
  await earlier.ended('/', never);
  const stop = new AbortController();
  const waiting = assert.rejects(earlier.ended('/a', stop.signal), /stopped/);
  await looksAgain(clock, () => false);
  stop.abort(new Error('stopped'));
  await waiting;
});
