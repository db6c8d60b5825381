// Header blocks of HTTP/2 as lists of fields (HPACK, RFC 7541). One decoder for all blocks of a connection, in their order:
// fields that the peer put into the dynamic table are meant by later blocks.
import { decodeHuffman } from './huffman.ts';
import { ErrorCode, ProtocolError } from './protocol-error.ts';
import { STATIC_TABLE } from './static-table.ts';

/** Names and values in turn, as they came. */
export type HeaderList = readonly string[];

/** The first field of that name. */
export function fieldOf(headers: HeaderList, name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1];
  return undefined;
}

/** What a table may hold unless a side announces another size; we announce none. */
const TABLE_BYTES = 4096;
const ENTRY_OVERHEAD = 32;
/** Integers have at most this many bytes after the first: more than 2^28 is no index and no length. */
const MAX_INTEGER_BYTES = 4;

type Entry = { readonly name: string; readonly value: string; readonly bytes: number };

const entry = (name: string, value: string): Entry => ({
  name,
  value,
  bytes: name.length + value.length + ENTRY_OVERHEAD,
});
const STATIC = STATIC_TABLE.map(([name, value]) => entry(name, value));

export class HpackDecoder {
  readonly #maxListBytes: number;
  /** The newest is last. */
  #dynamic: Entry[] = [];
  #dynamicBytes = 0;
  #limit = TABLE_BYTES;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #end = 0;

  /** A field counts with its length and 32 bytes more, as in the table. */
  constructor(maxListBytes: number) {
    this.#maxListBytes = maxListBytes;
  }

  decode(bytes: Buffer, from: number, to: number): HeaderList {
    this.#bytes = bytes;
    this.#at = from;
    this.#end = to;
    const list: string[] = [];
    let size = 0;
    this.#sizeUpdates();
    while (this.#at < this.#end) {
      const field = this.#field();
      size += field.bytes;
      if (size > this.#maxListBytes)
        throw new ProtocolError(ErrorCode.EnhanceYourCalm, `more than ${this.#maxListBytes} bytes of header fields`);
      list.push(field.name, field.value);
    }
    return list;
  }

  /** Only at the beginning of a block. */
  #sizeUpdates(): void {
    while (this.#at < this.#end && ((this.#bytes[this.#at] as number) & 0xe0) === 0x20) {
      const size = this.#integer(5);
      if (size > TABLE_BYTES) throw broken('a table larger than was allowed');
      this.#limit = size;
      this.#evict(0);
    }
  }

  #field(): Entry {
    const first = this.#bytes[this.#at] as number;
    if (first >= 0x80) return this.#indexed(this.#integer(7));
    if ((first & 0xe0) === 0x20) throw broken('a change of the table in the middle of a block');
    const isKept = first >= 0x40;
    const index = this.#integer(isKept ? 6 : 4);
    const name = index === 0 ? this.#string() : this.#indexed(index).name;
    const field = entry(name, this.#string());
    if (isKept) this.#keep(field);
    return field;
  }

  #indexed(index: number): Entry {
    const found =
      index <= STATIC.length ? STATIC[index - 1] : this.#dynamic[this.#dynamic.length - (index - STATIC.length)];
    if (found === undefined) throw broken(`no field has the index ${index}`);
    return found;
  }

  #keep(field: Entry): void {
    this.#evict(field.bytes);
    // One that does not fit leaves an empty table, which is no error.
    if (field.bytes > this.#limit) return;
    this.#dynamic.push(field);
    this.#dynamicBytes += field.bytes;
  }

  /** Makes room for so many bytes. */
  #evict(bytes: number): void {
    let evicted = 0;
    while (evicted < this.#dynamic.length && this.#dynamicBytes + bytes > this.#limit)
      this.#dynamicBytes -= (this.#dynamic[evicted++] as Entry).bytes;
    if (evicted > 0) this.#dynamic = this.#dynamic.slice(evicted);
  }

  #integer(prefixBits: number): number {
    const most = 2 ** prefixBits - 1;
    let value = this.#byte() & most;
    if (value < most) return value;
    for (let i = 0; i < MAX_INTEGER_BYTES; i++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return value;
    }
    throw broken('a number is too large');
  }

  #string(): string {
    const isHuffman = this.#at < this.#end && (this.#bytes[this.#at] as number) >= 0x80;
    const length = this.#integer(7);
    const from = this.#at;
    if (length > this.#end - from) throw broken('a string is longer than its block');
    this.#at = from + length;
    return isHuffman ? decodeHuffman(this.#bytes, from, this.#at) : this.#bytes.toString('latin1', from, this.#at);
  }

  #byte(): number {
    if (this.#at >= this.#end) throw broken('a header block ends too early');
    return this.#bytes[this.#at++] as number;
  }
}

const broken = (what: string): ProtocolError => new ProtocolError(ErrorCode.Compression, what);
