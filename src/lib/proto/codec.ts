// Protobuf on plain objects, driven by the field tables that scripts/generate-proto.ts writes from our .proto files.
// proto3 rules: absent scalars are zero values, absent messages are undefined, zero values are not sent. Texts that are
// not UTF-8 are read with U+FFFD instead of refused: one label would otherwise hide a whole list.
import { EMPTY, MalformedMessage, Reader } from './reader.ts';
import { BYTES, FIXED64, VARINT } from './wire-types.ts';
import { inInt64, inUint64, Writer, type WholeType } from './writer.ts';

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

const wireTypeOf = (type: FieldSpec['type']): number =>
  typeof type !== 'string' || type === 'string' || type === 'bytes' || type === 'map'
    ? BYTES
    : type === 'double' || type === 'fixed64'
      ? FIXED64
      : VARINT;

// ---- encode ----

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
      return w.fixed64(inUint64(value as bigint));
    case 'bigint64':
      return w.varint64(inInt64(value as bigint));
    default:
      return w.whole(type as WholeType, value as number, name);
  }
}

// ---- decode ----

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

function empty(spec: MessageSpec): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  const fields = spec.fields();
  for (let i = 0; i < fields.length; i++) {
    const field = fields[i] as FieldSpec;
    const zero = zeroOf(field);
    if (zero !== undefined) out[field.name] = zero;
  }
  return out;
}

/** Into `out`, where a part of the message was there already. */
function readMessage(r: Reader, spec: MessageSpec, out = empty(spec)): Record<string, unknown> {
  const index = indexOf(spec);
  while (!r.done) {
    const tag = r.tag();
    const field = index.get(tag >>> 3);
    if (field === undefined) r.ignore(tag);
    else readField(r, field, tag & 7, out);
  }
  return out;
}

function readField(r: Reader, field: FieldSpec, wireType: number, out: Record<string, unknown>): void {
  const { type, name } = field;
  const isList = field.repeated === true;
  const expected = wireTypeOf(type);
  if (isList && expected !== BYTES && wireType === BYTES) {
    const packed = r.nested();
    while (!packed.done) (out[name] as unknown[]).push(readScalar(packed, type as ScalarType));
    return;
  }
  if (wireType !== expected)
    throw new MalformedMessage(`field ${name} has wire type ${wireType}, expected ${expected}`);
  if (type === 'map') return readMapEntry(r.nested(), out[name] as Record<string, string>);
  if (isList)
    (out[name] as unknown[]).push(typeof type === 'string' ? readScalar(r, type) : readMessage(r.nested(), type));
  else if (typeof type === 'string') out[name] = readScalar(r, type);
  else out[name] = readMessage(r.nested(), type, out[name] as Record<string, unknown> | undefined);
}

function readMapEntry(r: Reader, map: Record<string, string>): void {
  let key = '';
  let value = '';
  while (!r.done) {
    const tag = r.tag();
    if (tag === ((1 << 3) | BYTES)) key = r.string();
    else if (tag === ((2 << 3) | BYTES)) value = r.string();
    else r.ignore(tag);
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
    case 'enum':
      return r.varint32();
    case 'uint32':
      return r.varint32() >>> 0;
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
