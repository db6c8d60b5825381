// Reads many small kernel files at little cost: one open, one read and one close each, one promise for all of them. A node
// full of pods has thousands of these, and the comfortable ways of reading a file take several times as long.
import { close, open, read, readFileSync } from 'node:fs';
import { errnoOf } from '../../lib/errors.ts';
import { kernelFiles } from '../kernel-files.ts';

/** One read for nearly every file. The traffic of a hundred disks is longer. */
const BUFFER_BYTES = 16 * 1024;

/** EOPNOTSUPP: a controller that is there but keeps no such figures. */
const MISSING = new Set(['ENOENT', 'ENODEV', 'ENOTDIR', 'EOPNOTSUPP', 'ENOTSUP']);

/** Buffers are handed from file to file: as many as are ever read at once. */
const spare: Buffer[] = [];

/** The texts by path; files that are not there are left out. Rejects with the first other failure. */
export const readFiles = (paths: readonly string[]): Promise<ReadonlyMap<string, string>> =>
  kernelFiles.answer(
    () => readByThreads(paths),
    () => readDirectly(paths),
  );

function readDirectly(paths: readonly string[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const path of paths) {
    try {
      texts.set(path, readFileSync(path, 'latin1'));
    } catch (err) {
      if (!MISSING.has(errnoOf(err) ?? '')) throw err;
    }
  }
  return texts;
}

function readByThreads(paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
  return new Promise((resolve, reject) => {
    const texts = new Map<string, string>();
    let left = paths.length;
    let failure: Error | undefined;
    const done = (): void => {
      if (--left > 0) return;
      if (failure === undefined) resolve(texts);
      else reject(failure);
    };
    if (left === 0) return resolve(texts);
    for (const path of paths)
      readSmall(path, (err, text) => {
        if (err !== null && !MISSING.has(errnoOf(err) ?? '')) failure ??= err;
        if (text !== undefined) texts.set(path, text);
        done();
      });
  });
}

function readSmall(path: string, done: (err: Error | null, text?: string) => void): void {
  open(path, 'r', (openError, fd) => {
    if (openError !== null) return done(openError);
    const buffer = spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
    const readOn = (before: string): void =>
      read(fd, buffer, 0, BUFFER_BYTES, null, (readError, bytes) => {
        const text = readError === null ? before + buffer.toString('latin1', 0, bytes) : undefined;
        if (text !== undefined && bytes === BUFFER_BYTES) return readOn(text);
        spare.push(buffer);
        close(fd, () => done(readError, text));
      });
    readOn('');
  });
}
