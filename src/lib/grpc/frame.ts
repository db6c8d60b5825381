// gRPC's length-prefixed messages: one byte of flags (compression, never used here), four of length.
import { GrpcCode, GrpcError } from './status.ts';

const HEADER_BYTES = 5;

export function frame(message: Buffer): Buffer {
  const out = Buffer.allocUnsafe(HEADER_BYTES + message.length);
  out[0] = 0;
  out.writeUInt32BE(message.length, 1);
  message.copy(out, HEADER_BYTES);
  return out;
}

/** Cuts a byte stream into messages. */
export class FrameReader {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #size = 0;
  #want = -1;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether the stream ended between two messages. */
  get clean(): boolean {
    return this.#size === 0 && this.#want < 0;
  }

  *push(chunk: Buffer): Iterable<Buffer> {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    for (;;) {
      if (this.#want < 0) {
        if (this.#size < HEADER_BYTES) return;
        const header = this.#take(HEADER_BYTES);
        if (header[0] !== 0) throw new GrpcError(GrpcCode.Unimplemented, 'compressed messages are not supported');
        this.#want = header.readUInt32BE(1);
        if (this.#want > this.#maxBytes)
          throw new GrpcError(
            GrpcCode.ResourceExhausted,
            `received message larger than max (${this.#want} vs. ${this.#maxBytes})`,
          );
      }
      if (this.#size < this.#want) return;
      const message = this.#take(this.#want);
      this.#want = -1;
      yield message;
    }
  }

  #take(size: number): Buffer {
    const all = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    const rest = all.subarray(size);
    this.#chunks = rest.length > 0 ? [rest] : [];
    this.#size = rest.length;
    return all.subarray(0, size);
  }
}
