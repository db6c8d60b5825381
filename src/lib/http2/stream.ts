// One request and its answer on an HTTP/2 connection: how far both are, and what the caller is told of it. No stream of Node's.
import type { HeaderList } from './hpack-decoder.ts';

/** What becomes of a request. The last call is `onEnd` or `onLost`; after a `reset` there is none. None of them may throw. */
export interface StreamEvents {
  /** The head of the answer; those with a status of 1xx are left out. */
  onHead(status: number, headers: HeaderList): void;
  onData(chunk: Buffer): void;
  /** Comes ahead of chunks that are held back. */
  onTrailers(headers: HeaderList): void;
  /** The peer ended the stream in good order. */
  onEnd(): void;
  /**
   * There will be no more. `code` is the peer's; REFUSED_STREAM means that it has not acted on the request, CANCEL is also that of a
   * connection that is gone. No error: it was taken back, or the connection closed, without a reason.
   */
  onLost(code: number, error: Error | undefined): void;
}

/** What streams need of their connection. */
export interface StreamOwner {
  /** So many bytes of an answer are done with; the peer may send as many more. */
  consumed(stream: Stream, bytes: number): void;
  /** The stream ends here and now; the peer is told. */
  reset(stream: Stream, code: number): void;
}

export class Stream {
  readonly #owner: StreamOwner;
  readonly events: StreamEvents;
  readonly block: Buffer;
  /** What has to be sent after the headers, as far as it has not been. */
  body: Buffer | undefined;
  /** 0 while it waits for its turn. */
  id = 0;
  /** How much more we may send, and the peer. */
  sendWindow = 0;
  receiveWindow: number;
  /** What the peer may send besides, as soon as it is told. */
  credit = 0;
  hasHead = false;
  /** What `content-length` says that is yet to come. */
  missingBytes: number | undefined;
  /** Nothing of it is on the wire any more. */
  isClosed = false;
  #hasEnded = false;
  #isPaused: boolean;
  #held: Buffer[] = [];

  constructor(owner: StreamOwner, events: StreamEvents, request: Request, receiveWindow: number) {
    this.#owner = owner;
    this.events = events;
    this.block = request.block;
    this.body = request.body;
    this.#isPaused = request.isPaused === true;
    this.receiveWindow = receiveWindow;
  }

  /** Chunks are held back from now on, up to the window of the stream. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    // Whoever is told may pause it again, or have enough of it.
    for (let chunk = this.#next(); chunk !== undefined; chunk = this.#next()) this.#pass(chunk);
    if (this.#hasEnded && !this.#isPaused) this.#end();
  }

  /** Nothing more is wanted of it. */
  reset(code: number): void {
    this.#drop();
    this.#owner.reset(this, code);
  }

  deliver(chunk: Buffer): void {
    if (this.#isPaused) this.#held.push(chunk);
    else this.#pass(chunk);
  }

  end(): void {
    this.isClosed = true;
    this.#hasEnded = true;
    if (!this.#isPaused) this.#end();
  }

  lose(code: number, error: Error | undefined): void {
    this.isClosed = true;
    this.#drop();
    this.events.onLost(code, error);
  }

  #end(): void {
    this.#hasEnded = false;
    this.events.onEnd();
  }

  #next(): Buffer | undefined {
    return this.#isPaused ? undefined : this.#held.shift();
  }

  #pass(chunk: Buffer): void {
    this.events.onData(chunk);
    this.#owner.consumed(this, chunk.length);
  }

  #drop(): void {
    this.#hasEnded = false;
    for (const chunk of this.#held) this.#owner.consumed(this, chunk.length);
    this.#held = [];
  }
}

export type Request = {
  /** The header block. */
  readonly block: Buffer;
  readonly body?: Buffer;
  /** Chunks are held back from the beginning. */
  readonly isPaused?: boolean;
};
