// A protobuf message that is taken in piece by piece, of whose long fields (texts, bytes) only the beginning is kept: what
// a stranger makes long must not be held whole to be cut afterwards.
import { BYTES, END_OF_GROUP, FIXED32, FIXED64, GROUP, VARINT } from '../proto/wire-types.ts';
import { GrpcCode, GrpcError } from './status.ts';

const FIXED_BYTES: Readonly<Record<number, number>> = { [FIXED64]: 8, [FIXED32]: 4 };
const MAX_VARINT_BYTES = 10;
/** Groups in groups. */
const MAX_DEPTH = 100;

type State = 'tag' | 'varint' | 'length' | 'bytes';

export class TrimmedMessage {
  readonly #keep: number;
  readonly #parts: Buffer[] = [];
  #state: State = 'tag';
  #number: number[] = [];
  /** Of the field under way: bytes to keep, then bytes to drop. */
  #kept = 0;
  #dropped = 0;
  /** The fields of the groups that have begun and not ended. */
  readonly #groups: number[] = [];

  /** `keep`: how many bytes of each field. */
  constructor(keep: number) {
    this.#keep = keep;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) at = this.#state === 'bytes' ? this.#bytes(chunk, at) : this.#digit(chunk, at);
  }

  /** The message as far as it was kept. */
  end(): Buffer {
    if (this.#state !== 'tag' || this.#number.length > 0 || this.#groups.length > 0) throw malformed();
    return Buffer.concat(this.#parts);
  }

  #bytes(chunk: Buffer, at: number): number {
    const kept = Math.min(this.#kept, chunk.length - at);
    if (kept > 0) this.#parts.push(Buffer.from(chunk.subarray(at, at + kept)));
    const dropped = Math.min(this.#dropped, chunk.length - at - kept);
    this.#kept -= kept;
    this.#dropped -= dropped;
    if (this.#kept + this.#dropped === 0) this.#state = 'tag';
    return at + kept + dropped;
  }

  #digit(chunk: Buffer, at: number): number {
    const byte = chunk[at] ?? 0;
    this.#number.push(byte);
    if (this.#number.length > MAX_VARINT_BYTES) throw malformed();
    if (byte < 0x80) this.#whole(this.#number.splice(0));
    return at + 1;
  }

  /** A number is complete: a field's tag, its value or its length. */
  #whole(digits: readonly number[]): void {
    if (this.#state === 'length') {
      const length = valueOf(digits);
      this.#expect(Math.min(length, this.#keep), Math.max(0, length - this.#keep));
      this.#parts.push(varint(this.#kept));
      return;
    }
    this.#parts.push(Buffer.from(digits));
    if (this.#state === 'varint') {
      this.#state = 'tag';
      return;
    }
    this.#begin(valueOf(digits));
  }

  /** What comes after a field's tag. */
  #begin(tag: number): void {
    const type = tag % 8;
    const field = Math.floor(tag / 8);
    const fixed = FIXED_BYTES[type];
    if (tag > 0xffffffff || field === 0) throw malformed();
    if (type === VARINT) this.#state = 'varint';
    else if (type === BYTES) this.#state = 'length';
    else if (type === GROUP && this.#groups.length < MAX_DEPTH) this.#groups.push(field);
    else if (type === END_OF_GROUP && this.#groups.at(-1) === field) this.#groups.pop();
    else if (fixed === undefined) throw malformed();
    else this.#expect(fixed, 0);
  }

  #expect(kept: number, dropped: number): void {
    this.#kept = kept;
    this.#dropped = dropped;
    this.#state = kept + dropped === 0 ? 'tag' : 'bytes';
  }
}

const malformed = (): GrpcError => new GrpcError(GrpcCode.Internal, 'malformed message');

const valueOf = (digits: readonly number[]): number =>
  digits.reduce((sum, digit, i) => sum + (digit & 0x7f) * 2 ** (7 * i), 0);

function varint(value: number): Buffer {
  const digits: number[] = [];
  for (; value >= 0x80; value = Math.floor(value / 0x80)) digits.push((value % 0x80) | 0x80);
  return Buffer.from([...digits, value]);
}
