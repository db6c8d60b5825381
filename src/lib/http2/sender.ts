// The sending half of an HTTP/2 connection: frames in batches to the socket, bodies as far as the peer's windows, its frame size
// and the socket allow.
import type { Socket } from 'node:net';
import {
  DEFAULT_MAX_FRAME,
  DEFAULT_WINDOW,
  Flag,
  FRAME_HEAD_BYTES,
  FrameType,
  MAX_WINDOW,
  writeFrameHead,
} from './frames.ts';
import { EMPTY_TABLE } from './hpack-encoder.ts';
import { ErrorCode, ProtocolError } from './protocol-error.ts';
import type { Stream } from './stream.ts';

/** Bytes of answers that a peer may leave unread. */
const MAX_UNREAD_ANSWERS = 256 * 1024;
const LARGEST_FRAME = 64 * 1024;

/**
 * Answers that the socket has not written, by their ends in the byte stream. Requests are not counted: grpc-go servers measure
 * the line with pings while they read a large request, and the unsent rest of that request is not their fault.
 */
class UnwrittenAnswers {
  readonly #ends: { end: number; bytes: number }[] = [];
  #bytes = 0;

  /** Adds an answer that ends at `end`, drops those before `written`; returns the bytes of all that are left. */
  add(bytes: number, end: number, written: number): number {
    for (let first = this.#ends[0]; first !== undefined && first.end <= written; first = this.#ends[0]) {
      this.#bytes -= first.bytes;
      this.#ends.shift();
    }
    this.#ends.push({ end, bytes });
    this.#bytes += bytes;
    return this.#bytes;
  }
}

export class Sender {
  readonly #socket: Socket;
  /** Streams with a body that is not sent yet, in turn. */
  readonly #unsent = new Set<Stream>();
  #batch: Buffer[] | undefined;
  #batchBytes = 0;
  /** Bytes that the socket was given since it was opened. */
  #givenBytes = 0;
  readonly #answers = new UnwrittenAnswers();
  #window = DEFAULT_WINDOW;
  #initialWindow = DEFAULT_WINDOW;
  #maxFrame = DEFAULT_MAX_FRAME;
  #owesTable = false;
  #isStopped = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** The peer does not read as fast as we write. Where the batch alone makes it full, its flush makes the socket drain. */
  get isFull(): boolean {
    const socket = this.#socket;
    return socket.writableNeedDrain || socket.writableLength + this.#batchBytes >= socket.writableHighWaterMark;
  }

  /** From now on frames are kept together, until `flush`. */
  hold(): void {
    this.#batch ??= [];
  }

  flush(): void {
    const batch = this.#batch;
    this.#batch = undefined;
    this.#batchBytes = 0;
    if (batch === undefined || batch.length === 0) return;
    this.#give(batch.length === 1 ? (batch[0] as Buffer) : Buffer.concat(batch));
  }

  /** Nothing more is sent but a farewell, and that only where nothing is in its way. Ends the socket. */
  stop(farewell: Buffer): void {
    const socket = this.#socket;
    this.#isStopped = true;
    this.#batch = undefined;
    this.#unsent.clear();
    if (!socket.writable || socket.writableLength > 0) return void socket.destroy();
    socket.once('finish', () => socket.destroy());
    socket.end(farewell);
  }

  write(bytes: Buffer): void {
    if (this.#isStopped) return;
    if (this.#batch === undefined) return this.#give(bytes);
    this.#batch.push(bytes);
    this.#batchBytes += bytes.length;
  }

  /** An answer to what the peer sent. */
  answer(frame: Buffer): void {
    const end = this.#givenBytes + this.#batchBytes + frame.length;
    if (this.#answers.add(frame.length, end, this.#givenBytes - this.#socket.writableLength) > MAX_UNREAD_ANSWERS)
      throw new ProtocolError(ErrorCode.EnhanceYourCalm, 'the peer asks and does not read the answers');
    this.write(frame);
  }

  /** The headers, and the body as far as it goes. */
  open(stream: Stream): void {
    stream.sendWindow = this.#initialWindow;
    const { body } = stream;
    const block = this.#owesTable ? Buffer.concat([EMPTY_TABLE, stream.block]) : stream.block;
    this.#owesTable = false;
    if (block.length > this.#maxFrame) this.#writeLongBlock(stream, block);
    else if (body === undefined || body.length > this.#sendable(stream)) this.#writeHead(stream, block);
    else return this.#writeWhole(stream, block, body);
    if (body === undefined) return;
    this.#unsent.add(stream);
    this.pump();
  }

  /** Sends what there is and may be sent, a frame of each stream in turn. Returns whether there was any. */
  pump(): boolean {
    let any = false;
    for (let some = true; some;) {
      some = false;
      for (const stream of this.#unsent) {
        if (this.isFull) return any || some;
        some = this.#sendSome(stream) || some;
      }
      any ||= some;
    }
    return any;
  }

  /** Nothing more of its body is sent. */
  drop(stream: Stream): void {
    if (stream.body === undefined) return;
    stream.body = undefined;
    this.#unsent.delete(stream);
  }

  widen(stream: Stream, increment: number): boolean {
    if (stream.sendWindow + increment > MAX_WINDOW) return false;
    stream.sendWindow += increment;
    return true;
  }

  widenAll(increment: number): void {
    if (this.#window + increment > MAX_WINDOW)
      throw new ProtocolError(ErrorCode.FlowControl, 'the window of the connection is too large');
    this.#window += increment;
  }

  /** Larger ones than a socket takes at a time would only keep other streams waiting. */
  setMaxFrame(bytes: number): void {
    this.#maxFrame = Math.min(bytes, LARGEST_FRAME);
  }

  /** For streams that are open, too; a window may become negative by that. */
  setInitialWindow(bytes: number, open: Iterable<Stream>): void {
    const more = bytes - this.#initialWindow;
    this.#initialWindow = bytes;
    for (const stream of open)
      if (!this.widen(stream, more)) throw new ProtocolError(ErrorCode.FlowControl, 'a window is too large');
  }

  /** The peer has changed the size of the table that it keeps for our fields. */
  tableChanged(): void {
    this.#owesTable = true;
  }

  #give(bytes: Buffer): void {
    this.#givenBytes += bytes.length;
    this.#socket.write(bytes);
  }

  #sendable(stream: Stream): number {
    return Math.min(this.#window, stream.sendWindow, this.#maxFrame);
  }

  #writeHead({ id, body }: Stream, block: Buffer): void {
    const out = Buffer.allocUnsafe(FRAME_HEAD_BYTES + block.length);
    const flags = Flag.EndHeaders | (body === undefined ? Flag.EndStream : 0);
    block.copy(out, writeFrameHead(out, 0, block.length, FrameType.Headers, flags, id));
    this.write(out);
  }

  /** The usual case: everything in one piece. */
  #writeWhole(stream: Stream, block: Buffer, body: Buffer): void {
    const { id } = stream;
    const out = Buffer.allocUnsafe(2 * FRAME_HEAD_BYTES + block.length + body.length);
    let at = writeFrameHead(out, 0, block.length, FrameType.Headers, Flag.EndHeaders, id);
    at += block.copy(out, at);
    at = writeFrameHead(out, at, body.length, FrameType.Data, Flag.EndStream, id);
    body.copy(out, at);
    this.#spend(stream, body.length);
    stream.body = undefined;
    this.write(out);
  }

  #writeLongBlock({ id, body }: Stream, block: Buffer): void {
    for (let from = 0; from < block.length; from += this.#maxFrame) {
      const part = block.subarray(from, from + this.#maxFrame);
      const isLast = from + part.length === block.length;
      const flags = (isLast ? Flag.EndHeaders : 0) | (from === 0 && body === undefined ? Flag.EndStream : 0);
      const out = Buffer.allocUnsafe(FRAME_HEAD_BYTES + part.length);
      part.copy(
        out,
        writeFrameHead(out, 0, part.length, from === 0 ? FrameType.Headers : FrameType.Continuation, flags, id),
      );
      this.write(out);
    }
  }

  #sendSome(stream: Stream): boolean {
    const { id, body } = stream;
    if (body === undefined) return false;
    const bytes = Math.min(body.length, this.#sendable(stream));
    if (bytes <= 0 && body.length > 0) return false;
    const isLast = bytes === body.length;
    const out = Buffer.allocUnsafe(FRAME_HEAD_BYTES + bytes);
    body.copy(out, writeFrameHead(out, 0, bytes, FrameType.Data, isLast ? Flag.EndStream : 0, id), 0, bytes);
    this.#spend(stream, bytes);
    if (isLast) this.drop(stream);
    else stream.body = body.subarray(bytes);
    this.write(out);
    return true;
  }

  #spend(stream: Stream, bytes: number): void {
    this.#window -= bytes;
    stream.sendWindow -= bytes;
  }
}
