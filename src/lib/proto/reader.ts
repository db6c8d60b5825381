// Reads what a protobuf message consists of: numbers, texts, parts, and fields that are not known.
import { BYTES, END_OF_GROUP, FIXED32, FIXED64, GROUP, VARINT } from './wire-types.ts';

export const EMPTY = new Uint8Array(0);
/** Groups in groups of a field that is not known. */
const MAX_DEPTH = 100;

export class MalformedMessage extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'MalformedMessage';
  }
}

export class Reader {
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
    for (let i = 0; ; i++) {
      const byte = this.#digit(i);
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
  }

  /** The number and the wire type of a field. */
  tag(): number {
    const tag = this.varint();
    if (tag > 0xffffffff || tag >>> 3 === 0) throw new MalformedMessage(`${tag} is no field`);
    return tag;
  }

  /** The lower 32 bits of a varint: more are sent for negative numbers. */
  varint32(): number {
    let value = 0;
    for (let i = 0; ; i++) {
      const byte = this.#digit(i);
      if (i < 5) value |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) return value;
    }
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
    for (let i = 0; ; i++) {
      const byte = this.#digit(i);
      value |= BigInt(byte & 0x7f) << BigInt(7 * i);
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
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

  /** Skips the value of a field that is not known. */
  ignore(tag: number): void {
    const wireType = tag & 7;
    if (wireType === VARINT) this.varint64();
    else if (wireType === FIXED64) this.#skip(8);
    else if (wireType === BYTES) this.#skip(this.varint());
    else if (wireType === FIXED32) this.#skip(4);
    else if (wireType === GROUP) this.#ignoreGroup(tag);
    else throw new MalformedMessage(`wire type ${wireType} is not known`);
  }

  /** Up to the end of the group that `first` begins. */
  #ignoreGroup(first: number): void {
    const open = [first >>> 3];
    while (open.length > 0) {
      const tag = this.tag();
      if ((tag & 7) === GROUP) open.push(tag >>> 3);
      else if ((tag & 7) !== END_OF_GROUP) this.ignore(tag);
      else if (open.pop() !== tag >>> 3) throw new MalformedMessage('a group ends that did not begin');
      if (open.length > MAX_DEPTH) throw new MalformedMessage('groups in groups without end');
    }
  }

  /** A byte of a varint, of which there are ten: the last has one bit, and 64 bits are full. */
  #digit(index: number): number {
    const byte = this.#byte();
    if (index === 9 && byte > 1) throw new MalformedMessage('varint is too long');
    return byte;
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
