// Names as directories hold them: bytes, any but `/` and NUL. A name that is valid UTF-8 is a string, any other a Buffer,
// so that a name read from a directory always means the same entry again.
import { isUtf8 } from 'node:buffer';
import { KubeletError } from '../../lib/errors.ts';

export type EntryName = string | Buffer;

const NOT_ASCII = /[^\0-\x7f]/;

/** The name whose bytes these are, one character for each. */
export function nameOfBytes(latin1: string): EntryName {
  if (!NOT_ASCII.test(latin1)) return latin1;
  const bytes = Buffer.from(latin1, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : bytes;
}

/** The name again, if it can be one of a directory's entries and nothing else. */
export function entryName<T extends EntryName>(name: T): T {
  const text = typeof name === 'string' ? name : name.toString('latin1');
  if (text === '' || text === '.' || text === '..' || text.includes('/') || text.includes('\0'))
    throw new KubeletError('invalid', `${JSON.stringify(showName(name))} is not the name of a directory entry`);
  return name;
}

/** For people: a byte that is no UTF-8 as `\xe9`. */
export const showName = (name: EntryName): string =>
  typeof name === 'string'
    ? name
    : name.toString('latin1').replace(/[^\x20-\x7e]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
