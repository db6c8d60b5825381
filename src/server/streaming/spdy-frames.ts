// SPDY/3.1 frames, as much of them as a client of a container runtime needs. Header blocks that come in are not looked
// at: a runtime says nothing in them. Pure.

export const FrameType = {
  synStream: 1,
  synReply: 2,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  headers: 8,
  windowUpdate: 9,
} as const;

export const FLAG_FIN = 1;
const CONTROL = 0x80;
const VERSION = 3;
const HEAD_BYTES = 8;
const MAX_CONTROL_BYTES = 1024 * 1024;
const MAX_DATA_BYTES = 2 ** 24 - 1;

export type SpdyEvent =
  /** A piece of a stream; `fin` on its last. */
  | { readonly kind: 'data'; readonly streamId: number; readonly payload: Buffer; readonly fin: boolean }
  | { readonly kind: 'control'; readonly type: number; readonly flags: number; readonly payload: Buffer };

export class SpdyError extends Error {}

type DataFrame = { streamId: number; fin: boolean; left: number };

export class SpdyDecoder {
  #pending: Buffer = Buffer.alloc(0);
  #data: DataFrame | undefined;

  *push(chunk: Buffer): Generator<SpdyEvent, void, undefined> {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    for (;;) {
      const event = this.#data === undefined ? this.#frame() : this.#piece(this.#data);
      if (event === undefined) return;
      if (event !== 'more') yield event;
    }
  }

  #frame(): SpdyEvent | 'more' | undefined {
    const bytes = this.#pending;
    if (bytes.length < HEAD_BYTES) return undefined;
    const flags = bytes.readUInt8(4);
    const length = bytes.readUIntBE(5, 3);
    if ((bytes.readUInt8(0) & CONTROL) === 0) {
      this.#data = { streamId: bytes.readUInt32BE(0), fin: (flags & FLAG_FIN) !== 0, left: length };
      this.#pending = bytes.subarray(HEAD_BYTES);
      return 'more';
    }
    if ((bytes.readUInt16BE(0) & 0x7fff) !== VERSION) throw new SpdyError('not SPDY/3');
    if (length > MAX_CONTROL_BYTES) throw new SpdyError('control frame too long');
    if (bytes.length < HEAD_BYTES + length) return undefined;
    this.#pending = bytes.subarray(HEAD_BYTES + length);
    const payload = bytes.subarray(HEAD_BYTES, HEAD_BYTES + length);
    return { kind: 'control', type: bytes.readUInt16BE(2), flags, payload };
  }

  #piece(frame: DataFrame): SpdyEvent | undefined {
    if (frame.left > 0 && this.#pending.length === 0) return undefined;
    const payload = this.#pending.subarray(0, frame.left);
    this.#pending = this.#pending.subarray(payload.length);
    frame.left -= payload.length;
    if (frame.left === 0) this.#data = undefined;
    return { kind: 'data', streamId: frame.streamId, payload, fin: frame.fin && frame.left === 0 };
  }
}

function control(type: number, flags: number, ...parts: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt16BE(0x8000 | VERSION, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt8(flags, 4);
  head.writeUIntBE(
    parts.reduce((sum, p) => sum + p.length, 0),
    5,
    3,
  );
  return Buffer.concat([head, ...parts]);
}

const numbers = (...values: readonly number[]): Buffer => {
  const out = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) out.writeUInt32BE(value, 4 * i);
  return out;
};

export const pingFrame = (id: number): Buffer => control(FrameType.ping, 0, numbers(id));
export const rstFrame = (streamId: number, status: number): Buffer =>
  control(FrameType.rstStream, 0, numbers(streamId, status));

/** The head of a data frame; its payload follows as it is. */
export function dataHead(streamId: number, length: number, fin: boolean): Buffer {
  if (length > MAX_DATA_BYTES) throw new SpdyError('data frame too long');
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(streamId, 0);
  head.writeUInt8(fin ? FLAG_FIN : 0, 4);
  head.writeUIntBE(length, 5, 3);
  return head;
}

/**
 * Header blocks are one zlib stream per connection, primed with SPDY's dictionary. Ours are stored blocks: valid, a few
 * bytes longer, and without a compressor to keep. The stream's head names the dictionary by its checksum.
 */
export class HeaderWriter {
  #begun = false;

  synStream(streamId: number, headers: Readonly<Record<string, string>>): Buffer {
    const parts = [numbers(Object.keys(headers).length)];
    for (const [name, value] of Object.entries(headers))
      for (const text of [Buffer.from(name), Buffer.from(value)]) parts.push(numbers(text.length), text);
    return control(FrameType.synStream, 0, numbers(streamId, 0), Buffer.alloc(2), this.#stored(Buffer.concat(parts)));
  }

  #stored(block: Buffer): Buffer {
    const head = Buffer.alloc(5);
    head.writeUInt16LE(block.length, 1);
    head.writeUInt16LE(0xffff - block.length, 3);
    const begin = this.#begun ? Buffer.alloc(0) : ZLIB_HEAD;
    this.#begun = true;
    return Buffer.concat([begin, head, block, FLUSH]);
  }
}

/** Deflate with a 32 KiB window and a preset dictionary, whose Adler-32 is e3c6a7c2 (SPDY/3's). */
const ZLIB_HEAD = Buffer.from('78bbe3c6a7c2', 'hex');
/** An empty stored block: readers hand out what they have when they see it, and wait for more otherwise. */
const FLUSH = Buffer.from('000000ffff', 'hex');
