// Facts about a block device that need no open: its numbers from the node's inode, everything else from sysfs.
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../../lib/errors.ts';

const SECTOR = 512;

/** `8:16` for a block device; undefined for anything else, a missing path included. The path must be on a local filesystem. */
export async function deviceNumber(path: string): Promise<string | undefined> {
  try {
    const { rdev, mode } = await stat(path);
    return (mode & 0o170000) === 0o060000 ? majorMinor(rdev) : undefined;
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return undefined;
    throw err;
  }
}

/** The kernel's `major:minor`, from a device number as glibc packs it. */
export function majorMinor(device: number): string {
  const bits = BigInt(device);
  const major = ((bits >> 8n) & 0xfffn) | ((bits >> 32n) & 0xfffff000n);
  const minor = (bits & 0xffn) | ((bits >> 12n) & 0xffffff00n);
  return `${major}:${minor}`;
}

/** The capacity of a device in bytes; undefined when it is gone. */
export async function deviceBytes(number: string, sysDir = '/sys'): Promise<number | undefined> {
  try {
    return Number((await readFile(join(sysDir, 'dev/block', number, 'size'), 'utf8')).trim()) * SECTOR;
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}
