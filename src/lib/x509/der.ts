// DER, the byte form of ASN.1: just the types certificates use. Reading is strict about lengths and never copies.
import { KubeletError } from '../errors.ts';

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  sequence: 0x30,
  set: 0x31,
  printableString: 0x13,
  t61String: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  bmpString: 0x1e,
} as const;

function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const size = contents.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([Buffer.from([tag, ...lengthBytes(size)]), ...contents]);
}

function lengthBytes(size: number): number[] {
  if (size < 0x80) return [size];
  const bytes: number[] = [];
  for (let rest = size; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return [0x80 | bytes.length, ...bytes];
}

export const sequence = (...items: readonly Uint8Array[]): Buffer => der(TAG.sequence, ...items);
/** SET OF: DER wants its elements sorted by their bytes. */
export const setOf = (...items: readonly Uint8Array[]): Buffer => der(TAG.set, ...items.toSorted(Buffer.compare));
export const boolean = (value: boolean): Buffer => der(TAG.boolean, Buffer.from([value ? 0xff : 0]));
export const octetString = (value: Uint8Array): Buffer => der(TAG.octetString, value);
export const nullValue = (): Buffer => der(TAG.null);
export const utf8String = (text: string): Buffer => der(TAG.utf8String, Buffer.from(text, 'utf8'));
export const printableString = (text: string): Buffer => der(TAG.printableString, Buffer.from(text, 'ascii'));

/** `[n]` with explicit content or an implicitly tagged constructed value. */
export const context = (number: number, ...contents: readonly Uint8Array[]): Buffer => der(0xa0 | number, ...contents);
/** `[n]` in place of a primitive type's own tag. */
export const contextPrimitive = (number: number, content: Uint8Array): Buffer => der(0x80 | number, content);

/** A non-negative integer from big-endian bytes. */
export function integer(magnitude: Uint8Array): Buffer {
  let start = 0;
  while (start < magnitude.length - 1 && magnitude[start] === 0) start++;
  const trimmed = magnitude.length === 0 ? Buffer.from([0]) : magnitude.subarray(start);
  const signByte = (trimmed[0] ?? 0) >= 0x80 ? [Buffer.from([0])] : [];
  return der(TAG.integer, ...signByte, trimmed);
}

export const smallInteger = (value: number): Buffer => integer(Buffer.from([value]));

/** A bit string whose last byte has `unused` padding bits. */
export const bitString = (value: Uint8Array, unused = 0): Buffer => der(TAG.bitString, Buffer.from([unused]), value);

/** Named bits, bit 0 first; trailing zero bits are dropped as DER demands. */
export function namedBits(...bits: readonly number[]): Buffer {
  const highest = Math.max(-1, ...bits);
  if (highest < 0) return bitString(Buffer.alloc(0));
  const bytes = Buffer.alloc(Math.floor(highest / 8) + 1);
  for (const bit of bits) bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) | (0x80 >> (bit & 7));
  return bitString(bytes, 7 - (highest & 7));
}

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes: number[] = [];
  for (const arc of [first * 40 + second, ...rest]) {
    const groups = [arc & 0x7f];
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128))
      groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return der(TAG.oid, Buffer.from(bytes));
}

/** UTCTime up to 2049, GeneralizedTime beyond, whole seconds. Years have four digits. */
export function time(atMs: number): Buffer {
  if (!(atMs >= FIRST_MS && atMs < END_MS)) throw new KubeletError('invalid', `certificates have no time ${atMs}`);
  const digits = new Date(Math.floor(atMs / 1000) * 1000).toISOString().replace(/[-:T]|\.\d+/g, '');
  const year = Number(digits.slice(0, 4));
  if (year >= 1950 && year < 2050) return der(TAG.utcTime, Buffer.from(digits.slice(2), 'ascii'));
  return der(TAG.generalizedTime, Buffer.from(digits, 'ascii'));
}

/** The years 0 to 9999. */
const FIRST_MS = Date.parse('0000-01-01T00:00:00Z');
const END_MS = Date.parse('9999-12-31T23:59:59Z') + 1000;

export type DerNode = {
  readonly tag: number;
  /** Header and content. */
  readonly raw: Buffer;
  readonly content: Buffer;
};

const malformed = (what: string): KubeletError => new KubeletError('invalid', `malformed DER: ${what}`);

/** The one element that `bytes` holds, with nothing behind it. */
export function readDer(bytes: Uint8Array): DerNode {
  const { node, end } = readAt(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0);
  if (end !== bytes.length) throw malformed('trailing bytes');
  return node;
}

/** The elements inside a constructed one. */
export function children(node: DerNode): DerNode[] {
  if ((node.tag & 0x20) === 0) throw malformed('a primitive where a constructed element must be');
  const found: DerNode[] = [];
  for (let at = 0; at < node.content.length;) {
    const { node: child, end } = readAt(node.content, at);
    found.push(child);
    at = end;
  }
  return found;
}

function readAt(bytes: Buffer, start: number): { node: DerNode; end: number } {
  const tag = bytes[start];
  const first = bytes[start + 1];
  if (tag === undefined || first === undefined) throw malformed('it ends early');
  if ((tag & 0x1f) === 0x1f) throw malformed('a tag of more than one byte');
  let size = first;
  let at = start + 2;
  if (first >= 0x80) {
    const count = first & 0x7f;
    if (count === 0 || count > 4) throw malformed('a length it may not have');
    size = 0;
    for (let i = 0; i < count; i++) size = size * 256 + (bytes[at++] ?? 0);
    if (size < 0x80 || size < 256 ** (count - 1)) throw malformed('a length with more bytes than it needs');
  }
  const end = at + size;
  if (end > bytes.length) throw malformed('it ends early');
  return { node: { tag, raw: bytes.subarray(start, end), content: bytes.subarray(at, end) }, end };
}

export function readOid(node: DerNode): string {
  if (node.tag !== TAG.oid || node.content.length === 0) throw malformed('no object identifier');
  const arcs: number[] = [];
  let value = 0;
  for (const byte of node.content) {
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) {
      arcs.push(value);
      value = 0;
    }
  }
  const [head = 0, ...rest] = arcs;
  const first = Math.min(2, Math.floor(head / 40));
  return [first, head - first * 40, ...rest].join('.');
}

/** A bit string of whole bytes. */
export function readBitString(node: DerNode): Buffer {
  if (node.tag !== TAG.bitString || node.content[0] !== 0) throw malformed('no bit string of whole bytes');
  return node.content.subarray(1);
}

/** The positions of the bits that are set. */
export function readNamedBits(node: DerNode): number[] {
  if (node.tag !== TAG.bitString || node.content.length === 0) throw malformed('no bit string');
  const bytes = node.content.subarray(1);
  const set: number[] = [];
  for (let bit = 0; bit < bytes.length * 8; bit++) if (((bytes[bit >> 3] ?? 0) << (bit & 7)) & 0x80) set.push(bit);
  return set;
}

export function readText(node: DerNode): string {
  if (node.tag === TAG.bmpString && node.content.length % 2 !== 0) throw malformed('half a letter');
  if (node.tag === TAG.bmpString) return Buffer.from(node.content).swap16().toString('utf16le');
  return node.content.toString(node.tag === TAG.t61String ? 'latin1' : 'utf8');
}

export const pem = (label: string, bytes: Uint8Array): string =>
  `-----BEGIN ${label}-----\n${Buffer.from(bytes)
    .toString('base64')
    .replace(/.{1,64}/g, '$&\n')}-----END ${label}-----\n`;

/** Every block there is; what stands between them, and headers inside, is passed over. */
export function pemBlocks(text: string): { readonly label: string; readonly bytes: Buffer }[] {
  const blocks: { label: string; bytes: Buffer }[] = [];
  /** Labels without an end in the rest of the text. */
  const open = new Set<string>();
  const begin = /-----BEGIN ([A-Z0-9 ]{1,64})-----\r?\n/g;
  for (let found = begin.exec(text); found !== null; found = begin.exec(text)) {
    const [, label = ''] = found;
    const end = `-----END ${label}-----`;
    const at = open.has(label) ? -1 : text.indexOf(end, begin.lastIndex);
    if (at < 0) {
      open.add(label);
      continue;
    }
    blocks.push({ label, bytes: Buffer.from(withoutHeaders(text.slice(begin.lastIndex, at)), 'base64') });
    begin.lastIndex = at + end.length;
  }
  return blocks;
}

const withoutHeaders = (body: string): string => (body.includes(':') ? body.replace(/^[^]*?\r?\n\r?\n/, '') : body);

/** The bytes of the first block with one of `labels`, or undefined. */
export function readPem(text: string, ...labels: readonly string[]): Buffer | undefined {
  for (const [, label = '', body = ''] of text.matchAll(
    /-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]*)-----END \1-----/g,
  ))
    if (labels.includes(label)) return Buffer.from(body, 'base64');
  return undefined;
}
