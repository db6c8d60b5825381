// Bytes to values, in either byte order. Whatever the specification forbids throws `invalid`; nothing is guessed.
import { KubeletError } from '../errors.ts';
import { alignmentOf, parseSignature, parseSingleType, type BasicCode, type DBusType } from './signature.ts';
import { isObjectPath, Variant, type DBusValue } from './values.ts';

const MAX_ARRAY_BYTES = 64 * 1024 * 1024;
/** Variants nest without showing it in a signature. */
const MAX_VARIANTS = 64;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export class Reader {
  readonly #bytes: Buffer;
  readonly #little: boolean;
  #at = 0;
  #variants = 0;

  constructor(bytes: Buffer, littleEndian: boolean) {
    this.#bytes = bytes;
    this.#little = littleEndian;
  }

  get at(): number {
    return this.#at;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  align(to: number): void {
    const padding = this.#take((to - (this.#at % to)) % to);
    for (let i = padding; i < this.#at; i++) if (this.#bytes[i] !== 0) throw bad('padding is not zero');
  }

  value(type: DBusType): DBusValue {
    switch (type.code) {
      case 'a':
        return this.#array(type.of);
      case 'r':
        this.align(8);
        return type.fields.map((field) => this.value(field));
      case 'v':
        return this.#variant();
      default:
        return this.#basic(type.code);
    }
  }

  uint32(): number {
    this.align(4);
    const at = this.#take(4);
    return this.#little ? this.#bytes.readUInt32LE(at) : this.#bytes.readUInt32BE(at);
  }

  #array(of: DBusType): DBusValue {
    const length = this.uint32();
    if (length > MAX_ARRAY_BYTES) throw bad('array is larger than 64 MiB');
    this.align(alignmentOf(of));
    if (length > this.left) throw bad('ends in an array');
    const end = this.#at + length;
    if (of.code === 'y') return Uint8Array.from(this.#bytes.subarray(this.#take(length), end));
    const items: DBusValue[] = [];
    while (this.#at < end) items.push(this.value(of));
    if (this.#at !== end) throw bad('array ends inside an item');
    return items;
  }

  #variant(): Variant {
    if (++this.#variants > MAX_VARIANTS) throw bad('nests too many variants');
    const signature = this.#signature();
    const value = this.value(parseSingleType(signature));
    this.#variants--;
    return new Variant(signature, value);
  }

  #basic(code: BasicCode): DBusValue {
    switch (code) {
      case 'y':
        return this.#bytes.readUInt8(this.#take(1));
      case 'b':
        return this.#boolean();
      case 's':
      case 'o':
        return this.#text(code);
      case 'g':
        return this.#signature();
      case 'u':
      case 'h':
        return this.uint32();
      default:
        return this.#number(code);
    }
  }

  #number(code: 'n' | 'q' | 'i' | 'x' | 't' | 'd'): number | bigint {
    const size = code === 'n' || code === 'q' ? 2 : code === 'i' ? 4 : 8;
    this.align(size);
    const at = this.#take(size);
    const [bytes, little] = [this.#bytes, this.#little];
    switch (code) {
      case 'n':
        return little ? bytes.readInt16LE(at) : bytes.readInt16BE(at);
      case 'q':
        return little ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at);
      case 'i':
        return little ? bytes.readInt32LE(at) : bytes.readInt32BE(at);
      case 'x':
        return little ? bytes.readBigInt64LE(at) : bytes.readBigInt64BE(at);
      case 't':
        return little ? bytes.readBigUInt64LE(at) : bytes.readBigUInt64BE(at);
      case 'd':
        return little ? bytes.readDoubleLE(at) : bytes.readDoubleBE(at);
      default:
        return code satisfies never;
    }
  }

  #boolean(): boolean {
    const value = this.uint32();
    if (value > 1) throw bad('boolean is neither 0 nor 1');
    return value === 1;
  }

  #text(code: 's' | 'o'): string {
    const text = this.#terminated(this.uint32());
    if (code === 'o' && !isObjectPath(text)) throw bad('object path is malformed');
    return text;
  }

  #signature(): string {
    const text = this.#terminated(this.#bytes.readUInt8(this.#take(1)));
    parseSignature(text);
    return text;
  }

  #terminated(length: number): string {
    const at = this.#take(length + 1);
    if (this.#bytes[at + length] !== 0) throw bad('string does not end with NUL');
    const bytes = this.#bytes.subarray(at, at + length);
    if (bytes.includes(0)) throw bad('string contains NUL');
    try {
      return utf8.decode(bytes);
    } catch (err) {
      throw bad('string is not UTF-8', err);
    }
  }

  #take(size: number): number {
    const at = this.#at;
    if (size > this.left) throw bad('ends too early');
    this.#at += size;
    return at;
  }
}

/** The values of a message's body. */
export function unmarshal(signature: string, body: Buffer, littleEndian: boolean): DBusValue[] {
  const reader = new Reader(body, littleEndian);
  const values = parseSignature(signature).map((type) => reader.value(type));
  if (reader.left > 0) throw bad('has more than its signature says');
  return values;
}

const bad = (what: string, cause?: unknown): KubeletError =>
  new KubeletError('invalid', `D-Bus message: ${what}`, { cause });
