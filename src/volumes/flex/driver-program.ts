// Where the program of a FlexVolume driver is, and how to tell whether it is still the same one.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../../lib/errors.ts';
import { escapePlugin } from '../layout.ts';

/** Undefined for a name that is not that of a driver's directory. */
export function programOf(dir: string, name: string): string | undefined {
  const parts = name.split('/');
  const program = parts.at(-1) ?? '';
  if (name.startsWith('.') || name.includes('~') || name.includes('\0') || name.length > 253) return undefined;
  if (parts.some((part) => part === '' || part === '.' || part === '..')) return undefined;
  return join(dir, escapePlugin(name), program);
}

/** Another one for another program; undefined where there is none. */
export async function stampOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs, mode } = await stat(path, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}:${mode}`;
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR' || errnoOf(err) === 'ENAMETOOLONG') return undefined;
    throw err;
  }
}
