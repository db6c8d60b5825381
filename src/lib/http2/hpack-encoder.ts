// Header fields as a block of bytes (HPACK, RFC 7541): indexes of the static table, literals for the rest. Nothing is put into
// the dynamic table, so a block has no state and callers may keep the blocks they send again and again.
import { STATIC_TABLE } from './static-table.ts';

/** Sets the table that the peer keeps for us to nothing: owed after every change of its size by the peer. */
export const EMPTY_TABLE = Buffer.from([0x20]);

type Known = { readonly index: number; readonly values: Map<string, number> };
const known = new Map<string, Known>();
STATIC_TABLE.forEach(([name, value], i) => {
  const field = known.get(name) ?? { index: i + 1, values: new Map<string, number>() };
  known.set(name, field);
  if (value !== '') field.values.set(value, i + 1);
});

const LITERAL = 0x00;
/** Nobody on the way may put it into a table. */
const NEVER_INDEXED = 0x10;
const SECRET = new Set(['authorization', 'proxy-authorization', 'cookie']);
const TOKEN = /^:?[!#$%&'*+.^_`|~0-9a-z-]+$/;
/** Control characters, and what a byte does not hold. */
// oxlint-disable-next-line no-control-regex
const NOT_IN_A_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** Throws on a name or a value that no header may have. */
export function encodeHeaders(fields: Iterable<readonly [name: string, value: string]>): Buffer {
  let out = Buffer.allocUnsafe(512);
  let length = 0;
  for (const [key, value] of fields) {
    const name = key.toLowerCase();
    if (!TOKEN.test(name) || NOT_IN_A_VALUE.test(value))
      throw new Error(`the header ${key} has characters it may not have`);
    const most = length + name.length + value.length + 16;
    if (most > out.length) out = Buffer.concat([out.subarray(0, length)], 2 * most);
    length = writeField(out, length, name, value);
  }
  return out.subarray(0, length);
}

function writeField(out: Buffer, at: number, name: string, value: string): number {
  const field = known.get(name);
  const whole = field?.values.get(value);
  if (whole !== undefined) return writeInteger(out, at, 0x80, 7, whole);
  const next = writeInteger(out, at, SECRET.has(name) ? NEVER_INDEXED : LITERAL, 4, field?.index ?? 0);
  return writeString(out, field === undefined ? writeString(out, next, name) : next, value);
}

function writeString(out: Buffer, at: number, text: string): number {
  const from = writeInteger(out, at, 0, 7, text.length);
  return from + out.write(text, from, 'latin1');
}

function writeInteger(out: Buffer, at: number, flags: number, prefixBits: number, value: number): number {
  const most = 2 ** prefixBits - 1;
  if (value < most) {
    out[at] = flags | value;
    return at + 1;
  }
  out[at] = flags | most;
  let rest = value - most;
  let next = at + 1;
  for (; rest >= 0x80; rest >>>= 7) out[next++] = (rest & 0x7f) | 0x80;
  out[next] = rest;
  return next + 1;
}
