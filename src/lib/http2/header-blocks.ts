// Header blocks that come in several frames: HEADERS and the CONTINUATIONs after it, nothing in between. Bounded in bytes and in
// frames, of which a peer could send empty ones for ever.
import { ErrorCode, ProtocolError } from './protocol-error.ts';

const MAX_FRAMES = 256;

export type HeaderBlock = { readonly stream: number; readonly flags: number; readonly bytes: Buffer };

export class HeaderBlocks {
  readonly #maxBytes: number;
  #stream = 0;
  #flags = 0;
  #parts: Buffer[] = [];
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The stream whose block is not complete; 0 for none. */
  get open(): number {
    return this.#stream;
  }

  /** `flags` are those of the HEADERS frame. */
  begin(stream: number, flags: number, part: Buffer): void {
    this.#stream = stream;
    this.#flags = flags;
    this.#add(part);
  }

  add(part: Buffer, isLast: boolean): HeaderBlock | undefined {
    this.#add(part);
    if (!isLast) return undefined;
    const block = { stream: this.#stream, flags: this.#flags, bytes: Buffer.concat(this.#parts) };
    this.#stream = 0;
    this.#parts = [];
    this.#size = 0;
    return block;
  }

  #add(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > this.#maxBytes || this.#parts.length >= MAX_FRAMES)
      throw new ProtocolError(ErrorCode.EnhanceYourCalm, 'a header block does not end');
    this.#parts.push(Buffer.from(part));
  }
}
