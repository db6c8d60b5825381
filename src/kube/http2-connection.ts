// One HTTP/2 connection: its streams, their number, whether the other side is still there, and its end. Silence under open
// streams is answered with a ping, and so is a request that waits for longer than usual. Without an answer to a ping the owner
// looks for another way; where there is none, the server may be slow, and the connection has more time.
import type { Socket } from 'node:net';
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { ClientConnection } from '../lib/http2/connection.ts';
import type { Outgoing, Reply } from './exchange.ts';
import { Http2Exchange, type ExchangeOwner } from './http2-exchange.ts';

/** Found, replaced and used again within the six seconds that a pod may take then. */
const QUIET_MS = 3000;
const SILENT_MS = 2000;
const GIVEN_UP_MS = 15_000;
/** A request is late after some times what answers take. */
const LATE_MS = 500;
const LATE_TIMES = 4;
/** What was sent before a ping delays it: as on a line of 8 kB/s. */
const SLOW_BYTES_PER_MS = 8;
/** Answers that came while this process did not run are read before they are missed. */
const READ_FIRST_MS = 50;
/** A connection that nobody used for this long is closed. */
const UNUSED_MS = 90_000;
const STREAM_WINDOW = 1024 * 1024;
const CONNECTION_WINDOW = 16 * 1024 * 1024;
/** Watches of a connection that the server is closing come back on another one within this time. */
const GOAWAY_SPREAD_MS = 2000;

export class Http2Connection implements ExchangeOwner {
  readonly #clock: Clock;
  readonly #socket: Socket;
  readonly #connection: ClientConnection;
  readonly #watches = new Set<Http2Exchange>();
  /** Since when exchanges wait, and whether a ping was sent for them. */
  readonly #unanswered = new Map<Http2Exchange, { readonly since: number; asked: boolean }>();
  readonly #timers = new Set<Timer>();
  /** The server's settings have come; rejects where they never will. */
  readonly #ready = Promise.withResolvers<void>();
  /** Called once, when the connection takes no more streams. */
  onEnd: () => void = () => undefined;
  /** Called when the connection is gone. */
  onClose: () => void = () => undefined;
  /** Called when a ping has no answer. */
  onSilent: () => void = () => undefined;
  #hasServed = false;
  #closing = false;
  #usedAt: number;
  #heardAt: number;
  /** How long an answer takes. */
  #usualMs = 0;
  #pingedAt: number | undefined;
  #isLateChecked = false;
  #written = 0;

  private constructor(clock: Clock, socket: Socket) {
    this.#clock = clock;
    this.#socket = socket;
    this.#usedAt = this.#heardAt = clock.monotonic();
    socket.on('data', () => (this.#heardAt = clock.monotonic()));
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
    this.#later(QUIET_MS, () => this.#look());
  }

  /** Stands when the server has sent its settings: until then nobody has shown that they speak HTTP/2. */
  static async open(
    clock: Clock,
    socket: Socket,
    authority: string,
    options: { readonly timeoutMs: number },
    signal: AbortSignal,
  ): Promise<Http2Connection> {
    const connection = new Http2Connection(clock, socket);
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
    this.#unanswered.set(exchange, { since: this.#clock.monotonic(), asked: false });
    const reply = exchange.begin(this.#connection, out);
    this.#checkLater();
    return reply;
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

  answered(exchange: Http2Exchange): void {
    this.#hasServed = true;
    const { since } = this.#unanswered.get(exchange) ?? {};
    this.#unanswered.delete(exchange);
    if (since !== undefined) this.#usualMs += (this.#clock.monotonic() - since - this.#usualMs) / 8;
  }

  over(exchange: Http2Exchange): void {
    this.#watches.delete(exchange);
    this.#unanswered.delete(exchange);
    this.#usedAt = this.#clock.monotonic();
  }

  /** A ping was sent, and nothing has come since. */
  get isSilent(): boolean {
    return this.#pingedAt !== undefined && this.#heardAt < this.#pingedAt;
  }

  /** Whether the other side is still there: `onSilent` says when not. */
  ask(): void {
    if (this.#pingedAt !== undefined || this.#connection.isClosed) return;
    const at = this.#clock.monotonic();
    this.#pingedAt = at;
    const delayMs = (this.#socket.bytesWritten - this.#written) / SLOW_BYTES_PER_MS;
    const patienceMs = Math.min(Math.max(SILENT_MS, LATE_TIMES * this.#usualMs) + delayMs, GIVEN_UP_MS);
    this.#later(patienceMs, () => this.#later(READ_FIRST_MS, () => this.#missed(at)));
    this.#later(GIVEN_UP_MS, () => this.#later(READ_FIRST_MS, () => this.#giveUp(at)));
    this.#connection.ping(() => (this.#pingedAt = undefined));
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
    const now = this.#clock.monotonic();
    if (this.active === 0 && now - this.#usedAt >= UNUSED_MS) return this.#connection.close();
    const leftMs = this.#heardAt + QUIET_MS - now;
    if (leftMs <= 0 && this.active > 0) this.ask();
    this.#written = this.#socket.bytesWritten;
    this.#later(leftMs > 0 ? leftMs : QUIET_MS, () => this.#look());
  }

  /** One timer for all that wait. */
  #checkLater(): void {
    if (this.#isLateChecked || this.#connection.isClosed) return;
    this.#isLateChecked = true;
    this.#later(Math.max(LATE_MS, LATE_TIMES * this.#usualMs), () => {
      this.#isLateChecked = false;
      this.#checkLate();
    });
  }

  #checkLate(): void {
    const lateMs = Math.max(LATE_MS, LATE_TIMES * this.#usualMs);
    const before = this.#clock.monotonic() - lateMs;
    let isLeft = false;
    for (const waiting of this.#unanswered.values()) {
      if (waiting.asked) continue;
      waiting.asked = Math.max(waiting.since, this.#heardAt) <= before;
      if (waiting.asked) this.ask();
      else isLeft = true;
    }
    if (isLeft) this.#checkLater();
  }

  #missed(at: number): void {
    if (this.#pingedAt === at && this.isSilent) this.onSilent();
  }

  /** Whoever sends something else is there. */
  #giveUp(at: number): void {
    if (this.#pingedAt !== at) return;
    if (this.isSilent) this.destroy(new KubeletError('unavailable', `no answer to a ping in ${GIVEN_UP_MS}ms`));
    else this.#pingedAt = undefined;
  }
}
