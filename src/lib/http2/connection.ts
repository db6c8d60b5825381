// The client's side of one HTTP/2 connection (RFC 9113) on a socket that is open: requests go out, answers come in, the peer's
// limits are kept and ours are enforced. What the peer does wrong ends the connection with an error, never with an exception.
import type { Socket } from 'node:net';
import {
  goAwayFrame,
  MAX_STREAM_ID,
  pingFrame,
  PREFACE,
  resetFrame,
  Setting,
  settingsFrame,
  windowUpdateFrame,
  DEFAULT_WINDOW,
} from './frames.ts';
import { ErrorCode, errorName, ProtocolError } from './protocol-error.ts';
import { Receiver, type ReceiverPort } from './receiver.ts';
import { Sender } from './sender.ts';
import { Stream, type Request, type StreamEvents, type StreamOwner } from './stream.ts';

export type ConnectionOptions = {
  /** How much the peer may send on a stream, and on all together, before it is read. */
  readonly streamWindow: number;
  readonly connectionWindow: number;
  /** `receive` is called by the owner with a buffer that is used again; the socket's `data` events otherwise. */
  readonly isShared?: boolean;
};

export interface ConnectionEvents {
  /** The first settings of the peer have come: it does speak HTTP/2. */
  onReady?(): void;
  /** It takes no more requests: the peer wants to close it, or it is closed. Called once. */
  onRetired(): void;
  /** It is gone, and everything on it; without an error where it was closed in good order or without a word. */
  onClose(error: Error | undefined): void;
}

/** What a peer takes that has not said so yet, as others assume, too. */
const ASSUMED_STREAMS = 100;

export class ClientConnection implements StreamOwner, ReceiverPort {
  readonly #socket: Socket;
  readonly #o: ConnectionOptions;
  readonly #events: ConnectionEvents;
  readonly #sender: Sender;
  readonly #receiver: Receiver;
  readonly #streams = new Map<number, Stream>();
  /** Those the peer or the socket has no room for yet, in turn. */
  readonly #waiting = new Set<Stream>();
  #pings: (() => void)[] = [];
  #nextId = 1;
  #limit = ASSUMED_STREAMS;
  #isRetired = false;
  #isClosed = false;
  #credit = 0;

  private constructor(socket: Socket, options: ConnectionOptions, events: ConnectionEvents) {
    this.#socket = socket;
    this.#o = options;
    this.#events = events;
    this.#sender = new Sender(socket);
    this.#receiver = new Receiver(this, this.#sender, {
      // The protocol has no means to make it smaller.
      window: Math.max(options.connectionWindow, DEFAULT_WINDOW),
      isShared: options.isShared === true,
    });
  }

  static on(socket: Socket, options: ConnectionOptions, events: ConnectionEvents): ClientConnection {
    const connection = new ClientConnection(socket, options, events);
    connection.#begin();
    return connection;
  }

  /** No more requests here. */
  get isRetired(): boolean {
    return this.#isRetired;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Requests under way. */
  get active(): number {
    return this.#streams.size + this.#waiting.size;
  }

  /** Streams that the peer allows. */
  get limit(): number {
    return this.#limit;
  }

  /** Throws where the connection takes no more. */
  request(request: Request, events: StreamEvents): Stream {
    if (this.#isRetired) throw new Error('the connection takes no more requests');
    const stream = new Stream(this, events, request, this.#o.streamWindow);
    this.#receiver.calm();
    if (this.#waiting.size === 0 && this.#hasRoom()) this.#open(stream);
    else this.#waiting.add(stream);
    return stream;
  }

  /** `answered` is called at most once. */
  ping(answered: () => void): void {
    if (this.#isClosed) return;
    this.#pings.push(answered);
    this.#sender.write(pingFrame(false, Buffer.alloc(8)));
  }

  /** No more requests; what is under way may finish. */
  close(): void {
    this.#retire();
    if (!this.#isClosed && this.active === 0) this.destroy();
  }

  /** Everything ends now. */
  destroy(error?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#retire();
    this.#sender.stop(goAwayFrame(error instanceof ProtocolError ? error.code : ErrorCode.None));
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.lose(ErrorCode.Cancel, error);
    this.#refuseWaiting(error);
    this.#events.onClose(error);
  }

  /** What the socket has received, for who reads it himself. */
  receive(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.#sender.hold();
    try {
      this.#receiver.push(chunk);
      this.#pump();
    } catch (err) {
      this.destroy(err instanceof Error ? err : new Error(String(err)));
    }
    this.#sender.flush();
  }

  // ---- of streams ----

  consumed(stream: Stream | undefined, bytes: number): void {
    if (this.#isClosed) return;
    const { streamWindow, connectionWindow } = this.#o;
    this.#credit += bytes;
    if (this.#credit >= connectionWindow / 2) {
      this.#sender.write(windowUpdateFrame(0, this.#credit));
      this.#receiver.widen(this.#credit);
      this.#credit = 0;
    }
    if (stream === undefined || stream.isClosed) return;
    stream.credit += bytes;
    if (stream.credit < streamWindow / 2) return;
    this.#sender.write(windowUpdateFrame(stream.id, stream.credit));
    stream.receiveWindow += stream.credit;
    stream.credit = 0;
  }

  reset(stream: Stream, code: number): void {
    if (stream.isClosed) return;
    stream.isClosed = true;
    this.#sender.drop(stream);
    if (!this.#waiting.delete(stream)) {
      this.#streams.delete(stream.id);
      this.#sender.write(resetFrame(stream.id, code));
    }
    this.#next();
  }

  // ---- of the receiver ----

  get streams(): ReadonlyMap<number, Stream> {
    return this.#streams;
  }

  get nextId(): number {
    return this.#nextId;
  }

  ready(): void {
    this.#events.onReady?.();
  }

  limitStreams(limit: number): void {
    this.#limit = limit;
    this.#next();
  }

  pong(): void {
    this.#pings.shift()?.();
  }

  ended(stream: Stream): void {
    // The answer is complete: what is left of the request is of no use.
    if (stream.body !== undefined) this.#sender.answer(resetFrame(stream.id, ErrorCode.None));
    this.#sender.drop(stream);
    this.#streams.delete(stream.id);
    stream.end();
    this.#next();
  }

  lost(stream: Stream, code: number, error: Error | undefined): void {
    if (stream.isClosed) return;
    this.#sender.drop(stream);
    this.#streams.delete(stream.id);
    stream.lose(code, error);
    this.#next();
  }

  refuse(stream: Stream, code: number, what: string): void {
    this.#sender.answer(resetFrame(stream.id, code));
    this.lost(stream, code, new ProtocolError(code, what));
  }

  goAway(lastStream: number, code: number): void {
    this.#retire();
    this.#refuseWaiting(undefined);
    const unseen = [...this.#streams.values()].filter((stream) => stream.id > lastStream);
    for (const stream of unseen) this.lost(stream, ErrorCode.RefusedStream, refused());
    if (code !== ErrorCode.None) this.destroy(new Error(`the peer closed the connection with ${errorName(code)}`));
    else this.close();
  }

  // ---- inner ----

  #begin(): void {
    const { streamWindow, connectionWindow } = this.#o;
    const socket = this.#socket;
    socket.on('error', (err) => this.destroy(err));
    socket.on('end', () => this.destroy());
    socket.on('close', () => this.destroy());
    socket.on('drain', () => {
      this.#pump();
      this.#next();
    });
    if (this.#o.isShared !== true) socket.on('data', (chunk: Buffer) => this.receive(chunk));
    const settings = settingsFrame([
      [Setting.EnablePush, 0],
      [Setting.InitialWindowSize, streamWindow],
    ]);
    const more = connectionWindow - DEFAULT_WINDOW;
    this.#sender.write(Buffer.concat([PREFACE, settings, ...(more > 0 ? [windowUpdateFrame(0, more)] : [])]));
  }

  /** A peer that lets a body go on is of use, even if it sends nothing but pings meanwhile. */
  #pump(): void {
    if (this.#sender.pump()) this.#receiver.calm();
  }

  #hasRoom(): boolean {
    return this.#streams.size < this.#limit && !this.#sender.isFull;
  }

  #open(stream: Stream): void {
    stream.id = this.#nextId;
    this.#nextId += 2;
    this.#streams.set(stream.id, stream);
    this.#sender.open(stream);
    if (this.#nextId > MAX_STREAM_ID) this.#retire();
  }

  /** After a stream has ended, or there is room otherwise. */
  #next(): void {
    if (this.#isClosed) return;
    for (const stream of this.#waiting) {
      if (!this.#hasRoom()) break;
      this.#waiting.delete(stream);
      this.#open(stream);
    }
    if (this.#isRetired && this.active === 0) this.destroy();
  }

  #refuseWaiting(error: Error | undefined): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const stream of waiting) stream.lose(ErrorCode.RefusedStream, error ?? refused());
  }

  #retire(): void {
    if (this.#isRetired) return;
    this.#isRetired = true;
    // A server that closes may read no more once the last stream has ended.
    if (!this.#isClosed) this.#sender.write(goAwayFrame(ErrorCode.None));
    this.#events.onRetired();
  }
}

const refused = (): Error => new Error(`Stream closed with error code ${errorName(ErrorCode.RefusedStream)}`);
