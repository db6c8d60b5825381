// One HTTP/2 connection: its streams, their number, whether the other side is still there, and its end. Silence for half a
// minute is answered with a ping; without an answer to that the connection is over, and everything on it.
import {
  connect,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import type { Socket } from 'node:net';
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { LostExchange, toError, type Fate, type Outgoing, type Reply } from './exchange.ts';

const READ_IDLE_MS = 30_000;
const PING_TIMEOUT_MS = 15_000;
/** A connection that nobody used for this long is closed. */
const UNUSED_MS = 90_000;
/** What a server allows that has not said so yet, as Go's client assumes. */
const ASSUMED_STREAMS = 100;
const STREAM_WINDOW = 1024 * 1024;
const CONNECTION_WINDOW = 16 * 1024 * 1024;
/** Watches of a connection that the server is closing come back on another one within this time. */
const GOAWAY_SPREAD_MS = 2000;

type Timing = { readonly readIdleMs?: number; readonly pingTimeoutMs?: number };

export class Http2Connection {
  readonly #clock: Clock;
  readonly #timing: Timing;
  readonly #socket: Socket;
  readonly #session: ClientHttp2Session;
  readonly #streams = new Set<ClientHttp2Stream>();
  readonly #timers = new Set<Timer>();
  /** Called once, when the connection takes no more streams. */
  onEnd: () => void = () => undefined;
  /** Called when the connection is gone. */
  onClose: () => void = () => undefined;
  #limit = ASSUMED_STREAMS;
  #active = 0;
  #served = 0;
  #closing = false;
  #bytesRead = 0;
  #unusedSince: number;

  private constructor(clock: Clock, socket: Socket, authority: string, timing: Timing) {
    this.#clock = clock;
    this.#timing = timing;
    this.#socket = socket;
    this.#unusedSince = clock.monotonic();
    const session = connect(`https://${authority}`, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW },
      maxSessionMemory: 64,
    });
    this.#session = session;
    session.once('connect', () => {
      if (!session.destroyed) session.setLocalWindowSize(CONNECTION_WINDOW);
    });
    session.on('remoteSettings', (settings) => (this.#limit = settings.maxConcurrentStreams ?? ASSUMED_STREAMS));
    // Streams hear of it themselves.
    session.on('error', () => this.#end());
    session.on('goaway', () => this.#goAway());
    session.once('close', () => {
      this.#end();
      for (const timer of this.#timers) timer.cancel();
      this.onClose();
    });
    this.#later(this.#readIdleMs, () => this.#look());
  }

  /** Stands when the server has sent its settings: until then nobody has shown that they speak HTTP/2. */
  static async open(
    clock: Clock,
    socket: Socket,
    authority: string,
    options: { readonly timeoutMs: number } & Timing,
    signal: AbortSignal,
  ): Promise<Http2Connection> {
    const connection = new Http2Connection(clock, socket, authority, options);
    try {
      await withDeadline(clock, signal, options.timeoutMs, (s) => abortable(s, connection.#settings));
      return connection;
    } catch (err) {
      const failure = new KubeletError('unavailable', `${authority} takes connections and does not answer`);
      connection.destroy(failure);
      throw signal.aborted ? err : failure;
    }
  }

  /** The server's settings have come, or never will. */
  get #settings(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#session.once('remoteSettings', () => resolve());
      this.#session.once('close', () => reject(new Error('closed')));
    });
  }

  /** No more exchanges here. */
  get closing(): boolean {
    return this.#closing || this.#session.closed || this.#session.destroyed;
  }

  get active(): number {
    return this.#active;
  }

  /** Streams that the server takes besides those that are open. */
  get room(): number {
    return this.closing ? 0 : this.#limit - this.#active;
  }

  exchange(out: Outgoing, signal: AbortSignal): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const reused = this.#served > 0;
      let stream: ClientHttp2Stream;
      try {
        signal.throwIfAborted();
        stream = this.#session.request(headersOf(out), { endStream: out.body === undefined });
      } catch (err) {
        return reject(signal.aborted ? toError(signal.reason) : new LostExchange(err, 'unprocessed'));
      }
      this.#opened(stream, out);
      const onAbort = (): void => {
        stream.close(constants.NGHTTP2_CANCEL);
        stream.destroy(toError(signal.reason));
      };
      signal.addEventListener('abort', onAbort, { once: true });
      let answered = false;
      stream.once('response', (headers) => {
        answered = true;
        this.#served++;
        resolve({ status: statusOf(headers), headers, body: stream });
      });
      stream.on('error', (err) =>
        reject(signal.aborted ? toError(signal.reason) : new LostExchange(err, fateOf(stream, reused))),
      );
      stream.once('close', () => {
        signal.removeEventListener('abort', onAbort);
        this.#closed(stream);
        if (answered) return; // an error is dear to make, and nobody would hear of it
        reject(new LostExchange(new Error('the stream was closed without an answer'), fateOf(stream, reused)));
      });
      if (out.body !== undefined) stream.end(out.body);
    });
  }

  /** Watches end now, other exchanges may finish. */
  retire(reason: Error): void {
    this.#end();
    for (const stream of this.#streams) endStream(stream, reason);
    if (!this.#session.destroyed) this.#session.close();
  }

  destroy(reason: Error): void {
    this.#end();
    this.#session.destroy(reason);
  }

  get #readIdleMs(): number {
    return this.#timing.readIdleMs ?? READ_IDLE_MS;
  }

  #opened(stream: ClientHttp2Stream, out: Outgoing): void {
    this.#active++;
    if (out.stream !== undefined) this.#streams.add(stream);
  }

  #closed(stream: ClientHttp2Stream): void {
    this.#streams.delete(stream);
    if (--this.#active === 0) this.#unusedSince = this.#clock.monotonic();
  }

  #end(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.onEnd();
  }

  /** The server wants us elsewhere. What is under way may finish, but a watch would hold on for an hour. */
  #goAway(): void {
    this.#end();
    const reason = new KubeletError('unavailable', 'the server closes the connection');
    for (const stream of this.#streams)
      this.#later(this.#clock.random() * GOAWAY_SPREAD_MS, () => endStream(stream, reason));
  }

  #later(ms: number, fn: () => void): void {
    const timer = this.#clock.after(ms, () => {
      this.#timers.delete(timer);
      fn();
    });
    this.#timers.add(timer);
  }

  #look(): void {
    if (this.#session.destroyed) return;
    const heard = this.#socket.bytesRead !== this.#bytesRead;
    this.#bytesRead = this.#socket.bytesRead;
    if (this.#active === 0 && this.#clock.monotonic() - this.#unusedSince >= UNUSED_MS) this.#session.close();
    else if (!heard) this.#ping();
    this.#later(this.#readIdleMs, () => this.#look());
  }

  #ping(): void {
    const ms = this.#timing.pingTimeoutMs ?? PING_TIMEOUT_MS;
    const timer = this.#clock.after(ms, () =>
      this.destroy(new KubeletError('unavailable', `no answer to a ping in ${ms}ms`)),
    );
    this.#timers.add(timer);
    const done = (): void => {
      timer.cancel();
      this.#timers.delete(timer);
    };
    try {
      this.#session.ping(done);
    } catch {
      done(); // the session is closing: its end settles everything
    }
  }
}

const headersOf = ({ method, path, authority, headers }: Outgoing): Record<string, string> => ({
  ':method': method,
  ':path': path,
  ':scheme': 'https',
  ':authority': authority,
  ...headers,
});

const statusOf = (headers: IncomingHttpHeaders & IncomingHttpStatusHeader): number => headers[':status'] ?? 0;

function endStream(stream: ClientHttp2Stream, reason: Error): void {
  if (stream.destroyed) return;
  stream.close(constants.NGHTTP2_CANCEL);
  stream.destroy(reason);
}

const fateOf = (stream: ClientHttp2Stream, reused: boolean): Fate => {
  if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) return 'unprocessed';
  return reused && stream.session?.destroyed !== false ? 'reused' : 'unknown';
};
