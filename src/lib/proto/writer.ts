// A protobuf message under construction: bytes that grow. Whole numbers beyond their type are sent as the nearest that it has: a limit
// of 8Ei is the largest int64, as in Go.
import { KubeletError } from '../errors.ts';

export type WholeType = 'int32' | 'enum' | 'uint32' | 'int64' | 'bigint64' | 'uint64' | 'fixed64';
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

export const inInt64 = (value: bigint): bigint => within(INT64, value);
export const inUint64 = (value: bigint): bigint => within(UINT64, value);

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
