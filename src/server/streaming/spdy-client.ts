// The client end of a SPDY connection to the runtime: a few streams, no flow control (runtimes have none); the
// connection's own back-pressure is all there is, and it is passed on.
import type { Duplex } from 'node:stream';
import type { Clock, Timer } from '../../lib/clock.ts';
import { lingeringEnd } from '../lingering-end.ts';
import {
  dataHead,
  FLAG_FIN,
  FrameType,
  HeaderWriter,
  pingFrame,
  rstFrame,
  SpdyDecoder,
  type SpdyEvent,
} from './spdy-frames.ts';

export type StreamHandlers = {
  readonly data?: (payload: Buffer) => void;
  /** `broken`: reset by the runtime, or the connection is gone. */
  readonly end?: (broken: boolean) => void;
};

const PING_EVERY_MS = 5000;
const MAX_PIECE = 1024 * 1024;
const REFUSED_STREAM = 3;

export class SpdyClient {
  readonly #socket: Duplex;
  readonly #clock: Clock;
  readonly #decoder = new SpdyDecoder();
  readonly #headers = new HeaderWriter();
  readonly #streams = new Map<number, StreamHandlers>();
  #nextStream = 1;
  #nextPing = 1;
  #timer: Timer | undefined;

  constructor(socket: Duplex, clock: Clock) {
    this.#socket = socket;
    this.#clock = clock;
  }

  /** `first` is what came behind the handshake. Open the streams before. */
  start(first: Buffer): void {
    const socket = this.#socket;
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('end', () => this.close());
    socket.on('close', () => this.#over());
    this.#ping();
    if (first.length > 0) this.#take(first);
  }

  open(headers: Readonly<Record<string, string>>, handlers: StreamHandlers): SpdyStream {
    const id = this.#nextStream;
    this.#nextStream += 2;
    this.#streams.set(id, handlers);
    this.#socket.write(this.#headers.synStream(id, headers));
    return new SpdyStream(id, this.#socket);
  }

  drained(fn: () => void): void {
    this.#socket.once('drain', fn);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#timer?.cancel();
    lingeringEnd(this.#socket);
    this.#over();
  }

  #ping(): void {
    this.#timer = this.#clock.after(PING_EVERY_MS, () => {
      if (this.#socket.destroyed || this.#socket.writableEnded) return;
      this.#socket.write(pingFrame(this.#nextPing));
      this.#nextPing += 2;
      this.#ping();
    });
  }

  #take(chunk: Buffer): void {
    try {
      for (const event of this.#decoder.push(chunk)) this.#on(event);
    } catch {
      // Not SPDY any more: the streams on it are lost, which their handlers are told.
      this.#socket.destroy();
      this.#over();
    }
  }

  #on(event: SpdyEvent): void {
    if (event.kind === 'data') {
      const stream = this.#streams.get(event.streamId);
      if (event.payload.length > 0) stream?.data?.(event.payload);
      if (event.fin) this.#ended(event.streamId, false);
      return;
    }
    const { type, flags, payload } = event;
    const id = payload.length >= 4 ? payload.readUInt32BE(0) & 0x7fffffff : 0;
    if (type === FrameType.ping && id % 2 === 0) this.#socket.write(pingFrame(id));
    else if (type === FrameType.synStream) this.#socket.write(rstFrame(id, REFUSED_STREAM));
    else if (type === FrameType.rstStream) this.#ended(id, true);
    else if ((type === FrameType.headers || type === FrameType.synReply) && (flags & FLAG_FIN) !== 0)
      this.#ended(id, false);
  }

  #ended(id: number, broken: boolean): void {
    const stream = this.#streams.get(id);
    this.#streams.delete(id);
    stream?.end?.(broken);
  }

  #over(): void {
    this.#timer?.cancel();
    for (const id of this.#streams.keys()) this.#ended(id, true);
  }
}

export class SpdyStream {
  readonly #id: number;
  readonly #socket: Duplex;
  #ended = false;

  constructor(id: number, socket: Duplex) {
    this.#id = id;
    this.#socket = socket;
  }

  /** False when the runtime is slow: wait until the client is drained. */
  write(payload: Buffer): boolean {
    if (this.#ended || this.#socket.destroyed || this.#socket.writableEnded) return true;
    let ready = true;
    for (let at = 0; at < payload.length; at += MAX_PIECE) {
      const piece = payload.subarray(at, at + MAX_PIECE);
      this.#socket.write(dataHead(this.#id, piece.length, false));
      ready = this.#socket.write(piece);
    }
    return ready;
  }

  end(): void {
    if (this.#ended || this.#socket.destroyed || this.#socket.writableEnded) return;
    this.#ended = true;
    this.#socket.write(dataHead(this.#id, 0, true));
  }
}
