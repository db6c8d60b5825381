// gRPC's length-prefixed messages: one byte of flags (compression, never used here), four of length.
import { GrpcCode, GrpcError } from './status.ts';
import { TrimmedMessage } from './trimmed-message.ts';

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
  readonly #keepFieldBytes: number | undefined;
  #chunks: Buffer[] = [];
  #size = 0;
  #want = -1;
  #trimmed: TrimmedMessage | undefined;

  /** With `keepFieldBytes` only the beginning of each field of a message is kept. */
  constructor(maxBytes: number, keepFieldBytes?: number) {
    this.#maxBytes = maxBytes;
    this.#keepFieldBytes = keepFieldBytes;
  }

  /** Whether the stream ended between two messages. */
  get clean(): boolean {
    return this.#size === 0 && this.#want < 0;
  }

  /** What has come of a message that is not complete, as far as it is kept in pieces. */
  get heldBytes(): number {
    return this.#size;
  }

  *push(chunk: Buffer): Iterable<Buffer> {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    for (;;) {
      if (this.#want < 0) {
        if (this.#size < HEADER_BYTES) return;
        this.#begin(this.#take(HEADER_BYTES));
      }
      this.#trim();
      if (this.#size < this.#want) return;
      const message = this.#take(this.#want);
      this.#want = -1;
      this.#trimmed?.push(message);
      yield this.#trimmed?.end() ?? message;
    }
  }

  #begin(header: Buffer): void {
    if (header[0] !== 0) throw new GrpcError(GrpcCode.Unimplemented, 'compressed messages are not supported');
    this.#want = header.readUInt32BE(1);
    if (this.#want > this.#maxBytes)
      throw new GrpcError(
        GrpcCode.ResourceExhausted,
        `grpc: received message larger than max (${this.#want} vs. ${this.#maxBytes})`,
      );
    this.#trimmed = this.#keepFieldBytes === undefined ? undefined : new TrimmedMessage(this.#keepFieldBytes);
  }

  /** Hands on what has come of a message that is only kept in part. */
  #trim(): void {
    if (this.#trimmed === undefined || this.#size >= this.#want) return;
    for (const piece of this.#chunks) this.#trimmed.push(piece);
    this.#want -= this.#size;
    this.#chunks = [];
    this.#size = 0;
  }

  #take(size: number): Buffer {
    const all = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    const rest = all.subarray(size);
    this.#chunks = rest.length > 0 ? [rest] : [];
    this.#size = rest.length;
    return all.subarray(0, size);
  }
}
