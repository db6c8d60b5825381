// One HTTP/2 connection: its streams, their number, whether the other side is still there, and its end. Silence for half a
// minute is answered with a ping; without an answer to that the connection is over, and everything on it.
import type { Socket } from 'node:net';
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { ClientConnection } from '../lib/http2/connection.ts';
import type { Outgoing, Reply } from './exchange.ts';
import { Http2Exchange, type ExchangeOwner } from './http2-exchange.ts';

const READ_IDLE_MS = 30_000;
const PING_TIMEOUT_MS = 15_000;
/** A connection that nobody used for this long is closed. */
const UNUSED_MS = 90_000;
const STREAM_WINDOW = 1024 * 1024;
const CONNECTION_WINDOW = 16 * 1024 * 1024;
/** Watches of a connection that the server is closing come back on another one within this time. */
const GOAWAY_SPREAD_MS = 2000;

type Timing = { readonly readIdleMs?: number; readonly pingTimeoutMs?: number };

export class Http2Connection implements ExchangeOwner {
  readonly #clock: Clock;
  readonly #timing: Timing;
  readonly #socket: Socket;
  readonly #connection: ClientConnection;
  readonly #watches = new Set<Http2Exchange>();
  readonly #timers = new Set<Timer>();
  /** The server's settings have come; rejects where they never will. */
  readonly #ready = Promise.withResolvers<void>();
  /** Called once, when the connection takes no more streams. */
  onEnd: () => void = () => undefined;
  /** Called when the connection is gone. */
  onClose: () => void = () => undefined;
  #hasServed = false;
  #closing = false;
  #bytesRead = 0;
  #usedAt: number;

  private constructor(clock: Clock, socket: Socket, timing: Timing) {
    this.#clock = clock;
    this.#timing = timing;
    this.#socket = socket;
    this.#usedAt = clock.monotonic();
    this.#ready.promise.catch(() => undefined); // it may be that nobody waits
    const windows = { streamWindow: STREAM_WINDOW, connectionWindow: CONNECTION_WINDOW };
    this.#connection = ClientConnection.on(socket, windows, {
      onReady: () => this.#ready.resolve(),
      onRetired: () => this.#retired(),
      onClose: () => {
        for (const timer of this.#timers) timer.cancel();
        this.#ready.reject(new Error('closed'));
        this.onClose();
      },
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
    const connection = new Http2Connection(clock, socket, options);
    try {
      await withDeadline(clock, signal, options.timeoutMs, (s) => abortable(s, connection.#ready.promise));
      return connection;
    } catch (err) {
      const failure = new KubeletError('unavailable', `${authority} takes connections and does not answer`);
      connection.destroy(failure);
      throw signal.aborted ? err : failure;
    }
  }

  /** No more exchanges here. */
  get closing(): boolean {
    return this.#closing;
  }

  get active(): number {
    return this.#connection.active;
  }

  /** Streams that the server takes besides those that are open. */
  get room(): number {
    return this.#closing ? 0 : this.#connection.limit - this.#connection.active;
  }

  exchange(out: Outgoing, signal: AbortSignal): Promise<Reply> {
    const exchange = new Http2Exchange(this, this.#hasServed, signal);
    if (out.stream !== undefined) this.#watches.add(exchange);
    return exchange.begin(this.#connection, out);
  }

  /** Watches end now, other exchanges may finish. */
  retire(reason: Error): void {
    this.#end();
    for (const watch of this.#watches) watch.destroy(reason);
    this.#connection.close();
  }

  destroy(reason: Error): void {
    this.#end();
    this.#connection.destroy(reason);
  }

  answered(): void {
    this.#hasServed = true;
  }

  over(exchange: Http2Exchange): void {
    this.#watches.delete(exchange);
    this.#usedAt = this.#clock.monotonic();
  }

  get #readIdleMs(): number {
    return this.#timing.readIdleMs ?? READ_IDLE_MS;
  }

  #end(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.onEnd();
  }

  /** The server wants us elsewhere. What is under way may finish, but a watch would hold on for an hour. */
  #retired(): void {
    if (this.#closing) return;
    this.#end();
    if (this.#connection.isClosed) return; // everybody is told
    const reason = new KubeletError('unavailable', 'the server closes the connection');
    for (const watch of this.#watches)
      this.#later(this.#clock.random() * GOAWAY_SPREAD_MS, () => watch.destroy(reason));
  }

  #later(ms: number, fn: () => void): void {
    const timer = this.#clock.after(ms, () => {
      this.#timers.delete(timer);
      fn();
    });
    this.#timers.add(timer);
  }

  #look(): void {
    if (this.#connection.isClosed) return;
    const heard = this.#socket.bytesRead !== this.#bytesRead;
    this.#bytesRead = this.#socket.bytesRead;
    if (this.active === 0 && this.#clock.monotonic() - this.#usedAt >= UNUSED_MS) return this.#connection.close();
    if (!heard) this.#ping();
    this.#later(this.#readIdleMs, () => this.#look());
  }

  #ping(): void {
    const ms = this.#timing.pingTimeoutMs ?? PING_TIMEOUT_MS;
    const timer = this.#clock.after(ms, () =>
      this.destroy(new KubeletError('unavailable', `no answer to a ping in ${ms}ms`)),
    );
    this.#timers.add(timer);
    this.#connection.ping(() => {
      timer.cancel();
      this.#timers.delete(timer);
    });
  }
}
