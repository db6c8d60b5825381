// Waits for an unmount that writes out. The kernel takes a mount away at once and writes what its filesystem still holds before
// umount(8) ends: whoever takes the disk away meanwhile loses it. So a limit counts only while the disk gets no further.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { childScope } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import { deviceNumber } from '../block/device-facts.ts';
import type { MountEntry, MountTable } from './mount-table.ts';

/** What the disk under a mount has written so far, as a text to compare; undefined where there is no disk. */
export type WrittenSoFar = (mount: MountEntry) => Promise<string | undefined>;

export type WriteOutDeps = {
  readonly clock: Clock;
  readonly table: (signal: AbortSignal) => Promise<MountTable>;
  readonly written: WrittenSoFar;
};

/** Fields of a block device's `stat`: writes, sectors written, flushes. */
const WRITES = [4, 6, 15];

export async function diskWritten({ device, source }: MountEntry, sysDir = '/sys'): Promise<string | undefined> {
  // Filesystems over several devices have a number of no device.
  const number = device.startsWith('0:') && source.startsWith('/dev/') ? await deviceNumber(source) : device;
  if (number === undefined) return undefined;
  try {
    const fields = (await readFile(join(sysDir, 'dev/block', number, 'stat'), 'utf8')).trim().split(/\s+/);
    return WRITES.map((at) => fields[at]).join(' ');
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}

/** Runs what unmounts `mount`; a `deadline` fault when the limit passes with the mount still there, or with nothing written. */
export async function whileWritingOut<T>(
  { clock, table, written }: WriteOutDeps,
  mount: MountEntry,
  limitMs: number,
  signal: AbortSignal,
  unmount: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const scope = childScope(signal);
  // Whoever cannot be asked says nothing: the limit counts.
  let before = await written(mount).catch(() => undefined);
  const getsOn = async (): Promise<boolean> => {
    const isThere = (await table(scope.signal)).entries.some(
      ({ id, target }) => id === mount.id && target === mount.target,
    );
    const now = isThere ? before : await written(mount);
    const isWriting = now !== before;
    before = now;
    return isWriting;
  };
  let isOver = false;
  const look = async (): Promise<void> => {
    const isWriting = await getsOn().catch(() => false);
    if (isOver) return;
    if (isWriting) timer = clock.after(limitMs, () => void look());
    else scope.abort(new KubeletError('deadline', `no answer in ${limitMs}ms`));
  };
  let timer = clock.after(limitMs, () => void look());
  try {
    return await unmount(scope.signal);
  } finally {
    isOver = true;
    timer.cancel();
    scope.release();
  }
}
