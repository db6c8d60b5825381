// Protobuf on plain objects, driven by the field tables that scripts/generate-proto.ts writes from our .proto files.
// proto3 rules: absent scalars are zero values, absent messages are undefined, zero values are not sent. Whole numbers beyond their
// type are sent as the nearest that it has: a limit of 8Ei is the largest int64, as in Go.
import { KubeletError } from '../errors.ts';

export type ScalarType =
  | 'string'
  | 'bytes'
  | 'bool'
  | 'int32'
  | 'int64'
  | 'uint32'
  | 'uint64'
  | 'double'
  | 'fixed64'
  | 'enum'
  | 'bigint64';

/** `[number, jsName, type, repeated?]`; `type` is a scalar, a message, or a map of string to string. */
export type FieldSpec = {
  readonly no: number;
  readonly name: string;
  readonly type: ScalarType | MessageSpec | 'map';
  readonly repeated?: true;
};
export type MessageSpec = { readonly name: string; readonly fields: () => readonly FieldSpec[] };

/** A typed message: `encode` and `decode` are all that callers need. */
export interface MessageType<T> {
  readonly spec: MessageSpec;
  /** Phantom: carries the object type. */
  readonly sample?: T;
}

/** What may be sent: every field may be left out. */
export type Partially<T> = T extends Uint8Array | bigint | string | number | boolean
  ? T
  : T extends readonly (infer E)[]
    ? readonly Partially<E>[]
    : { readonly [K in keyof T]?: Partially<T[K]> | undefined };

const EMPTY = new Uint8Array(0);
const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

const wireTypeOf = (type: FieldSpec['type']): number =>
  typeof type !== 'string' || type === 'string' || type === 'bytes' || type === 'map'
    ? BYTES
    : type === 'double' || type === 'fixed64'
      ? FIXED64
      : VARINT;

// ---- encode ----

type WholeType = Exclude<ScalarType, 'string' | 'bytes' | 'bool' | 'double'>;
type Range = { readonly least: bigint; readonly most: bigint };

const INT32: Range = { least: -(2n ** 31n), most: 2n ** 31n - 1n };
const INT64: Range = { least: -(2n ** 63n), most: 2n ** 63n - 1n };
const UINT64: Range = { least: 0n, most: 2n ** 64n - 1n };
const RANGES: Readonly<Record<WholeType, Range>> = {
  int32: INT32,
  enum: INT32,
  int64: INT64,
  bigint64: INT64,
  uint32: { least: 0n, most: 2n ** 32n - 1n },
  uint64: UINT64,
  fixed64: UINT64,
};
/** Numbers from 0 to this one are in the range of all types. */
const SMALL = 2 ** 31 - 1;

const within = ({ least, most }: Range, value: bigint): bigint => (value < least ? least : value > most ? most : value);

/** A message under construction, for those who know its fields themselves. */
export class Writer {
  #buffer = Buffer.allocUnsafe(256);
  #length = 0;

  finish(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  varint(value: number): void {
    if (value < 0 || value > 0xffffffff) return this.varint64(BigInt(Math.trunc(value)));
    this.#reserve(5);
    while (value > 0x7f) {
      this.#buffer[this.#length++] = (value & 0x7f) | 0x80;
      value >>>= 7;
    }
    this.#buffer[this.#length++] = value;
  }

  /** A whole number of a type; one beyond the type becomes the nearest that it has. `field` is named where there is none. */
  whole(type: WholeType, value: number, field: string): void {
    if (value >= 0 && value <= SMALL) return this.varint(value);
    if (!Number.isFinite(value)) throw new KubeletError('invalid', `field ${field}: ${value} is no ${type}`);
    this.varint64(within(RANGES[type], BigInt(Math.trunc(value))));
  }

  varint64(value: bigint): void {
    this.#reserve(10);
    let rest = BigInt.asUintN(64, value);
    while (rest > 0x7fn) {
      this.#buffer[this.#length++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.#buffer[this.#length++] = Number(rest);
  }

  double(value: number): void {
    this.#reserve(8);
    this.#length = this.#buffer.writeDoubleLE(value, this.#length);
  }

  fixed64(value: bigint): void {
    this.#reserve(8);
    this.#length = this.#buffer.writeBigUInt64LE(value, this.#length);
  }

  string(value: string): void {
    const size = Buffer.byteLength(value);
    this.varint(size);
    this.#reserve(size);
    this.#length += this.#buffer.write(value, this.#length);
  }

  bytes(value: Uint8Array): void {
    this.varint(value.length);
    this.#reserve(value.length);
    this.#buffer.set(value, this.#length);
    this.#length += value.length;
  }

  /** What is written until `end` is one value that its length goes before. Returns where it begins. */
  begin(): number {
    this.#reserve(1);
    return ++this.#length;
  }

  /** Most lengths take one byte. For a longer one the value is moved on. */
  end(from: number): void {
    const size = this.#length - from;
    if (size <= 0x7f) {
      this.#buffer[from - 1] = size;
      return;
    }
    const more = size < 0x4000 ? 1 : size < 0x200000 ? 2 : size < 0x10000000 ? 3 : 4;
    this.#reserve(more);
    this.#buffer.copyWithin(from + more, from, this.#length);
    this.#length = from - 1;
    this.varint(size);
    this.#length += size;
  }

  #reserve(size: number): void {
    if (this.#length + size <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + size));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}

export function encode<T>(type: MessageType<T>, value: T): Buffer {
  const writer = new Writer();
  writeMessage(writer, type.spec, value as Record<string, unknown>);
  return writer.finish();
}

function writeMessage(w: Writer, spec: MessageSpec, value: Record<string, unknown>): void {
  const fields = spec.fields();
  // By index: code that runs now and then is not compiled so far that an iterator would cost nothing.
  for (let i = 0; i < fields.length; i++) {
    const field = fields[i] as FieldSpec;
    const v = value[field.name];
    if (v === undefined || v === null) continue;
    if (field.type === 'map') writeMap(w, field.no, v as Record<string, string>);
    else if (field.repeated !== true) writeField(w, field, v, false);
    else if (typeof field.type === 'string' && wireTypeOf(field.type) !== BYTES) writePacked(w, field, v as unknown[]);
    else for (const item of v as unknown[]) writeField(w, field, item, true);
  }
}

function writeMap(w: Writer, no: number, map: Record<string, string>): void {
  for (const key of Object.keys(map)) {
    w.varint((no << 3) | BYTES);
    const entry = w.begin();
    w.varint((1 << 3) | BYTES);
    w.string(key);
    w.varint((2 << 3) | BYTES);
    w.string(map[key] ?? '');
    w.end(entry);
  }
}

function writePacked(w: Writer, field: FieldSpec, items: unknown[]): void {
  if (items.length === 0) return;
  w.varint((field.no << 3) | BYTES);
  const packed = w.begin();
  for (const item of items) writeScalar(w, field, item);
  w.end(packed);
}

const isZero = (value: unknown): boolean =>
  value === 0 || value === '' || value === false || value === 0n || (value instanceof Uint8Array && value.length === 0);

function writeField(w: Writer, field: FieldSpec, value: unknown, keepZero: boolean): void {
  const type = field.type;
  if (typeof type === 'string' && !keepZero && isZero(value)) return;
  w.varint((field.no << 3) | wireTypeOf(type));
  if (typeof type === 'string') return writeScalar(w, field, value);
  const nested = w.begin();
  writeMessage(w, type, value as Record<string, unknown>);
  w.end(nested);
}

function writeScalar(w: Writer, { name, type }: FieldSpec, value: unknown): void {
  switch (type as ScalarType) {
    case 'string':
      return w.string(value as string);
    case 'bytes':
      return w.bytes(value as Uint8Array);
    case 'bool':
      return w.varint(value === true ? 1 : 0);
    case 'double':
      return w.double(value as number);
    case 'fixed64':
      return w.fixed64(within(UINT64, value as bigint));
    case 'bigint64':
      return w.varint64(within(INT64, value as bigint));
    default:
      return w.whole(type as WholeType, value as number, name);
  }
}

// ---- decode ----

export class MalformedMessage extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'MalformedMessage';
  }
}

class Reader {
  readonly #buffer: Buffer;
  #at: number;
  readonly end: number;

  constructor(buffer: Buffer, at: number, end: number) {
    this.#buffer = buffer;
    this.#at = at;
    this.end = end;
  }

  get done(): boolean {
    return this.#at >= this.end;
  }

  /** An unsigned varint; exact up to 2^53. */
  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 10; i++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new MalformedMessage('varint is too long');
  }

  /** A signed varint, which is rarely so long that it is negative or inexact. */
  int64(): number {
    const from = this.#at;
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 7; i++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    this.#at = from;
    return Number(this.varint64());
  }

  varint64(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
    throw new MalformedMessage('varint is too long');
  }

  double(): number {
    const at = this.#skip(8);
    return this.#buffer.readDoubleLE(at);
  }

  fixed64(): bigint {
    const at = this.#skip(8);
    return this.#buffer.readBigUInt64LE(at);
  }

  string(): string {
    const size = this.varint();
    const at = this.#skip(size);
    return this.#buffer.toString('utf8', at, at + size);
  }

  bytes(): Uint8Array {
    const size = this.varint();
    const at = this.#skip(size);
    return size === 0 ? EMPTY : Uint8Array.prototype.slice.call(this.#buffer, at, at + size);
  }

  /** A reader over the next length-delimited value. */
  nested(): Reader {
    const size = this.varint();
    const at = this.#skip(size);
    return new Reader(this.#buffer, at, at + size);
  }

  ignore(wireType: number): void {
    if (wireType === VARINT) this.varint64();
    else if (wireType === FIXED64) this.#skip(8);
    else if (wireType === BYTES) this.#skip(this.varint());
    else if (wireType === FIXED32) this.#skip(4);
    else throw new MalformedMessage(`wire type ${wireType} is not known`);
  }

  #byte(): number {
    if (this.#at >= this.end) throw new MalformedMessage('message ends in the middle of a field');
    return this.#buffer[this.#at++] as number;
  }

  #skip(size: number): number {
    const at = this.#at;
    if (size > this.end - at) throw new MalformedMessage('message ends in the middle of a field');
    this.#at = at + size;
    return at;
  }
}

const fieldIndex = new WeakMap<MessageSpec, Map<number, FieldSpec>>();

function indexOf(spec: MessageSpec): Map<number, FieldSpec> {
  let index = fieldIndex.get(spec);
  if (index === undefined) fieldIndex.set(spec, (index = new Map(spec.fields().map((f) => [f.no, f]))));
  return index;
}

/** Decodes to an object that has every scalar, list and map set (to its zero value when absent). */
export function decode<T>(type: MessageType<T>, data: Uint8Array): T {
  const buffer = Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return readMessage(new Reader(buffer, 0, buffer.length), type.spec) as T;
}

function zeroOf(field: FieldSpec): unknown {
  if (field.repeated === true) return [];
  switch (field.type) {
    case 'map':
      return {};
    case 'string':
      return '';
    case 'bytes':
      return EMPTY;
    case 'bool':
      return false;
    case 'bigint64':
    case 'fixed64':
      return 0n;
    default:
      return typeof field.type === 'string' ? 0 : undefined;
  }
}

function readMessage(r: Reader, spec: MessageSpec): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  const fields = spec.fields();
  for (let i = 0; i < fields.length; i++) {
    const field = fields[i] as FieldSpec;
    const zero = zeroOf(field);
    if (zero !== undefined) out[field.name] = zero;
  }
  const index = indexOf(spec);
  while (!r.done) {
    const tag = r.varint();
    const field = index.get(tag >>> 3);
    const wireType = tag & 7;
    if (field === undefined) r.ignore(wireType);
    else readField(r, field, wireType, out);
  }
  return out;
}

function readField(r: Reader, field: FieldSpec, wireType: number, out: Record<string, unknown>): void {
  const { type } = field;
  if (type === 'map') return readMapEntry(r.nested(), out[field.name] as Record<string, string>);
  const expected = wireTypeOf(type);
  if (field.repeated === true && expected !== BYTES && wireType === BYTES) {
    const packed = r.nested();
    while (!packed.done) (out[field.name] as unknown[]).push(readScalar(packed, type as ScalarType));
    return;
  }
  if (wireType !== expected)
    throw new MalformedMessage(`field ${field.name} has wire type ${wireType}, expected ${expected}`);
  const value = typeof type === 'string' ? readScalar(r, type) : readMessage(r.nested(), type);
  if (field.repeated === true) (out[field.name] as unknown[]).push(value);
  else out[field.name] = value;
}

function readMapEntry(r: Reader, map: Record<string, string>): void {
  let key = '';
  let value = '';
  while (!r.done) {
    const tag = r.varint();
    if (tag >>> 3 === 1) key = r.string();
    else if (tag >>> 3 === 2) value = r.string();
    else r.ignore(tag & 7);
  }
  if (key !== '__proto__') map[key] = value;
  else Object.defineProperty(map, key, { value, enumerable: true, writable: true, configurable: true });
}

function readScalar(r: Reader, type: ScalarType): unknown {
  switch (type) {
    case 'string':
      return r.string();
    case 'bytes':
      return r.bytes();
    case 'bool':
      return r.varint() !== 0;
    case 'double':
      return r.double();
    case 'fixed64':
      return r.fixed64();
    case 'int32':
      return r.int64() | 0;
    case 'enum':
    case 'uint32':
    case 'uint64':
      return r.varint();
    case 'int64':
      return r.int64();
    case 'bigint64':
      return r.varint64();
    default:
      return type satisfies never;
  }
}
