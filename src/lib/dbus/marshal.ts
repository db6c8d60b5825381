// Values to bytes, little-endian. What does not fit its type is refused: the bus would end the connection for it.
import { KubeletError } from '../errors.ts';
import { alignmentOf, parseSignature, parseSingleType, type BasicCode, type DBusType } from './signature.ts';
import { isObjectPath, Variant, type DBusValue } from './values.ts';

const MAX_ARRAY_BYTES = 64 * 1024 * 1024;
const FIRST_BYTES = 256;

/** A growing buffer whose alignment counts from its first byte. */
export class Writer {
  #bytes = Buffer.alloc(FIRST_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  done(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  align(to: number): void {
    this.#room((to - (this.#length % to)) % to);
  }

  byte(value: number): void {
    // Room first: it may replace the buffer.
    const at = this.#room(1);
    this.#bytes.writeUInt8(value, at);
  }

  uint32(value: number): void {
    this.align(4);
    const at = this.#room(4);
    this.#bytes.writeUInt32LE(value, at);
  }

  /** Fills in a length known only afterwards. */
  setUint32(at: number, value: number): void {
    this.#bytes.writeUInt32LE(value, at);
  }

  bytes(data: Uint8Array): void {
    const at = this.#room(data.length);
    this.#bytes.set(data, at);
  }

  /** Space of this size after the padding it needs. */
  number(size: 2 | 4 | 8, write: (into: Buffer, at: number) => void): void {
    this.align(size);
    const at = this.#room(size);
    write(this.#bytes, at);
  }

  #room(size: number): number {
    const at = this.#length;
    this.#length += size;
    if (this.#length > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(this.#length, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, at);
      this.#bytes = larger;
    }
    return at;
  }
}

/** The body of a message. */
export function marshal(signature: string, values: readonly DBusValue[]): Buffer {
  const writer = new Writer();
  const types = parseSignature(signature);
  if (types.length !== values.length)
    throw new KubeletError(
      'invalid',
      `D-Bus signature ${signature} wants ${types.length} values, got ${values.length}`,
    );
  for (const [i, type] of types.entries()) writeValue(writer, type, values[i] as DBusValue);
  return writer.done();
}

export function writeValue(writer: Writer, type: DBusType, value: DBusValue): void {
  switch (type.code) {
    case 'a':
      return writeArray(writer, type.of, value);
    case 'r':
      return writeStruct(writer, type.fields, value);
    case 'v':
      if (!(value instanceof Variant)) throw misfit('v', value);
      writeSignature(writer, value.signature);
      return writeValue(writer, parseSingleType(value.signature), value.value);
    default:
      return writeBasic(writer, type.code, value);
  }
}

function writeArray(writer: Writer, of: DBusType, value: DBusValue): void {
  writer.uint32(0);
  const at = writer.length - 4;
  writer.align(alignmentOf(of));
  const start = writer.length;
  if (value instanceof Uint8Array && of.code === 'y') writer.bytes(value);
  else if (isList(value)) for (const item of value) writeValue(writer, of, item);
  else throw misfit('a', value);
  if (writer.length - start > MAX_ARRAY_BYTES) throw new KubeletError('invalid', 'D-Bus array is larger than 64 MiB');
  writer.setUint32(at, writer.length - start);
}

function writeStruct(writer: Writer, fields: readonly DBusType[], value: DBusValue): void {
  if (!isList(value) || value.length !== fields.length) throw misfit('struct', value);
  writer.align(8);
  for (const [i, field] of fields.entries()) writeValue(writer, field, value[i] as DBusValue);
}

/** Sizes and ranges of the whole numbers. */
const INTEGERS = {
  n: { size: 2, signed: true },
  q: { size: 2, signed: false },
  i: { size: 4, signed: true },
  u: { size: 4, signed: false },
  h: { size: 4, signed: false },
  x: { size: 8, signed: true },
  t: { size: 8, signed: false },
} as const;

function writeBasic(writer: Writer, code: BasicCode, value: DBusValue): void {
  switch (code) {
    case 'y':
      if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > 255) throw misfit(code, value);
      return writer.byte(value);
    case 'b':
      if (typeof value !== 'boolean') throw misfit(code, value);
      return writer.uint32(value ? 1 : 0);
    case 'd':
      if (typeof value !== 'number') throw misfit(code, value);
      return writer.number(8, (into, at) => into.writeDoubleLE(value, at));
    case 's':
    case 'o':
      return writeText(writer, code, value);
    case 'g':
      if (typeof value !== 'string') throw misfit(code, value);
      return writeSignature(writer, value);
    default:
      return writeInteger(writer, code, value);
  }
}

function writeInteger(writer: Writer, code: keyof typeof INTEGERS, value: DBusValue): void {
  const { size, signed } = INTEGERS[code];
  if (size === 8 ? typeof value !== 'bigint' : !Number.isInteger(value)) throw misfit(code, value);
  try {
    if (size === 8)
      writer.number(8, (into, at) =>
        signed ? into.writeBigInt64LE(value as bigint, at) : into.writeBigUInt64LE(value as bigint, at),
      );
    else
      writer.number(size, (into, at) =>
        signed ? into.writeIntLE(value as number, at, size) : into.writeUIntLE(value as number, at, size),
      );
  } catch (err) {
    throw misfit(code, value, err);
  }
}

function writeText(writer: Writer, code: 's' | 'o', value: DBusValue): void {
  if (typeof value !== 'string' || value.includes('\0') || !value.isWellFormed()) throw misfit(code, value);
  if (code === 'o' && !isObjectPath(value)) throw misfit(code, value);
  const bytes = Buffer.from(value);
  writer.uint32(bytes.length);
  writer.bytes(bytes);
  writer.byte(0);
}

function writeSignature(writer: Writer, signature: string): void {
  parseSignature(signature);
  writer.byte(signature.length);
  writer.bytes(Buffer.from(signature, 'latin1'));
  writer.byte(0);
}

const isList = (value: DBusValue): value is readonly DBusValue[] => Array.isArray(value);

const misfit = (code: string, value: DBusValue, cause?: unknown): KubeletError =>
  new KubeletError('invalid', `D-Bus type ${code} does not take ${describe(value)}`, { cause });

const describe = (value: DBusValue): string => (typeof value === 'object' ? 'this object' : String(value).slice(0, 64));
