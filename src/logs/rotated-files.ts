// The files a log was rotated into: `<log>.<YYYYMMDD-HHMMSS>`, later with `.gz`. Names sort by time.
import { lstat } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { openRegular } from '../host/files/open-regular.ts';
import { errnoOf } from '../lib/errors.ts';
import { LineSplitter } from './line-splitter.ts';
import { LogDir } from './log-dir.ts';
import { inodeOf } from './log-file.ts';

const ROTATED = /^\.\d{8}-\d{6}(?:\.gz)?$/;
export const COMPRESSED = '.gz';
export const TEMPORARY = '.tmp';

export const isCompressed = (path: string): boolean => path.endsWith(COMPRESSED);

/** Everything beside a log that carries its name, oldest first. */
async function siblingsOf(log: string): Promise<readonly string[]> {
  try {
    return await LogDir.using(log, (dir) => dir.siblings(log));
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return [];
    throw err;
  }
}

export const isRotated = (log: string, path: string): boolean => ROTATED.test(path.slice(log.length));

const plainName = (path: string): string => (isCompressed(path) ? path.slice(0, -COMPRESSED.length) : path);

/** Names of the files a log was rotated into, oldest first, without the mark of compression. */
export async function rotatedNames(log: string): Promise<readonly string[]> {
  const rotated = (await siblingsOf(log)).filter((path) => isRotated(log, path));
  return [...new Set(rotated.map(plainName))];
}

/** The name the file with this inode was rotated into, if it is still plain. */
export async function rotatedNameOf(names: readonly string[], inode: string): Promise<string | undefined> {
  for (const name of names.toReversed()) {
    try {
      if (inodeOf(await lstat(name)) === inode) return name;
    } catch (err) {
      // Compressed or deleted.
      if (errnoOf(err) !== 'ENOENT') throw err;
    }
  }
  return undefined;
}

/** All lines of a file that was compressed. */
export async function* unpackedLines(path: string, signal: AbortSignal): AsyncGenerator<readonly Buffer[]> {
  const raw = (await openRegular(path)).createReadStream({ signal });
  const input = raw.pipe(createGunzip());
  raw.once('error', (err) => input.destroy(err));
  const splitter = new LineSplitter();
  try {
    for await (const chunk of input) yield splitter.push(chunk as Buffer);
    const rest = splitter.remainder();
    if (rest !== undefined) yield [rest];
  } finally {
    raw.destroy();
    input.destroy();
  }
}
