// One request on an HTTP/2 connection and its answer, whose body waits until somebody reads it.
import type { ClientConnection } from '../lib/http2/connection.ts';
import { fieldOf, type HeaderList } from '../lib/http2/hpack-decoder.ts';
import { encodeHeaders } from '../lib/http2/hpack-encoder.ts';
import { ErrorCode } from '../lib/http2/protocol-error.ts';
import type { Stream, StreamEvents } from '../lib/http2/stream.ts';
import {
  cutShort,
  LostExchange,
  toError,
  type Body,
  type BodySink,
  type Fate,
  type Outgoing,
  type Reply,
} from './exchange.ts';

/** What an exchange tells its connection. */
export interface ExchangeOwner {
  answered(exchange: Http2Exchange): void;
  over(exchange: Http2Exchange): void;
}

export class Http2Exchange implements StreamEvents, Body {
  readonly #owner: ExchangeOwner;
  readonly #signal: AbortSignal;
  /** The connection had served before. */
  readonly #isReused: boolean;
  readonly #onAbort = (): void => this.destroy(toError(this.#signal.reason));
  #connection: ClientConnection | undefined;
  #stream: Stream | undefined;
  #resolve: (reply: Reply) => void = () => undefined;
  #reject: (err: Error) => void = () => undefined;
  #sink: BodySink | undefined;
  #failure: Error | undefined;
  #isAnswered = false;
  #isOver = false;

  constructor(owner: ExchangeOwner, isReused: boolean, signal: AbortSignal) {
    this.#owner = owner;
    this.#isReused = isReused;
    this.#signal = signal;
  }

  begin(connection: ClientConnection, out: Outgoing): Promise<Reply> {
    const reply = new Promise<Reply>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#connection = connection;
    try {
      this.#signal.throwIfAborted();
      const body = out.body === undefined ? {} : { body: Buffer.from(out.body) };
      this.#stream = connection.request({ block: blockOf(out), ...body, isPaused: true }, this);
      this.#signal.addEventListener('abort', this.#onAbort, { once: true });
    } catch (err) {
      this.#over();
      this.#reject(this.#signal.aborted ? toError(this.#signal.reason) : new LostExchange(err, 'unprocessed'));
    }
    return reply;
  }

  // ---- of the connection ----

  onHead(status: number, headers: HeaderList): void {
    this.#isAnswered = true;
    this.#owner.answered(this);
    this.#resolve({ status, header: (name) => fieldOf(headers, name), body: this });
  }

  onData(chunk: Buffer): void {
    this.#sink?.onData(chunk);
  }

  onTrailers(): void {
    // The API server has none to say.
  }

  onEnd(): void {
    this.#over();
    this.#sink?.onEnd();
  }

  onLost(code: number, error: Error | undefined): void {
    this.#fail(error, this.#fateOf(code));
  }

  // ---- of the reader ----

  read(sink: BodySink): void {
    this.#sink = sink;
    if (this.#failure !== undefined) sink.onError(this.#failure);
    else this.#stream?.resume();
  }

  pause(): void {
    this.#stream?.pause();
  }

  resume(): void {
    this.#stream?.resume();
  }

  destroy(reason?: Error): void {
    if (this.#isOver) return;
    this.#stream?.reset(ErrorCode.Cancel);
    this.#fail(reason, 'unknown');
  }

  #fail(error: Error | undefined, fate: Fate): void {
    if (this.#isOver) return;
    this.#over();
    if (this.#isAnswered) {
      this.#failure = error ?? cutShort();
      this.#sink?.onError(this.#failure);
      return;
    }
    const lost = error ?? new Error('the stream was closed without an answer');
    this.#reject(this.#signal.aborted ? toError(this.#signal.reason) : new LostExchange(lost, fate));
  }

  #over(): void {
    this.#isOver = true;
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#owner.over(this);
  }

  #fateOf(code: number): Fate {
    if (code === ErrorCode.RefusedStream) return 'unprocessed';
    return this.#isReused && this.#connection?.isClosed === true ? 'reused' : 'unknown';
  }
}

const blockOf = ({ method, path, authority, headers }: Outgoing): Buffer =>
  encodeHeaders([
    [':method', method],
    [':path', path],
    [':scheme', 'https'],
    [':authority', authority],
    ...Object.entries(headers),
  ]);
