// HTTP/2 to one server with one identity: everything shares one connection; when the server takes no more streams on it a
// further one is opened, up to a bound.
import { abortable } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { LostExchange, noRoom, toError, type Connections, type Outgoing, type Reply } from './exchange.ts';
import { Http2Connection } from './http2-connection.ts';
import type { Socket } from 'node:net';

export type Http2Options = {
  readonly authority: string;
  readonly maxConnections: number;
  /** Opens a connection that speaks HTTP/2. */
  readonly dial: (signal: AbortSignal) => Promise<Socket>;
};

/** Streams of a connection that optional watches leave free for requests. */
const KEPT_FREE = 10;

export class Http2Connections implements Connections {
  readonly #clock: Clock;
  readonly #o: Http2Options;
  readonly #stop = new AbortController();
  /** Those that take exchanges, and all that stand. */
  readonly #open = new Set<Http2Connection>();
  readonly #all = new Set<Http2Connection>();
  #opening: Promise<Http2Connection> | undefined;

  constructor(clock: Clock, options: Http2Options) {
    this.#clock = clock;
    this.#o = options;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Takes over a connection that somebody opened. */
  add(socket: Socket): Http2Connection {
    const connection: Http2Connection = new Http2Connection(this.#clock, socket, this.#o.authority, () =>
      this.#open.delete(connection),
    );
    this.#open.add(connection);
    this.#all.add(connection);
    socket.once('close', () => this.#all.delete(connection));
    return connection;
  }

  async exchange(out: Outgoing, signal: AbortSignal): Promise<Reply> {
    signal.throwIfAborted();
    for (let opened = 0; ; opened++) {
      if (this.#stop.signal.aborted) throw new LostExchange(this.#stop.signal.reason, 'unprocessed');
      // Nothing may come between the choice and the use: all who wait would choose the same.
      const connection = this.#choose(out, opened > this.#o.maxConnections);
      if (connection !== undefined) return await connection.exchange(out, signal);
      this.#opening ??= this.#dial().finally(() => (this.#opening = undefined));
      await abortable(signal, this.#opening);
    }
  }

  retire(reason: Error): void {
    this.#stop.abort(reason);
    for (const connection of this.#all) connection.retire(reason);
  }

  destroy(reason: Error): void {
    this.#stop.abort(reason);
    for (const connection of this.#all) connection.destroy(reason);
  }

  /** Undefined: one more has to be opened first. */
  #choose(out: Outgoing, noMore: boolean): Http2Connection | undefined {
    const needed = out.stream === 'optional' ? KEPT_FREE + 1 : 1;
    for (const connection of this.#open) if (connection.room >= needed) return connection;
    if (this.#open.size < this.#o.maxConnections && !noMore) return undefined;
    const [first, ...others] = this.#open;
    if (first === undefined) throw new LostExchange(new Error('the server closes every connection'), 'unknown');
    if (out.stream === 'optional') throw noRoom();
    // All are full: the request waits for a stream on the one with the fewest.
    return others.reduce((least, c) => (c.active < least.active ? c : least), first);
  }

  async #dial(): Promise<Http2Connection> {
    const socket = await this.#o.dial(this.#stop.signal);
    if (this.#stop.signal.aborted) {
      socket.destroy();
      throw toError(this.#stop.signal.reason);
    }
    return this.add(socket);
  }
}
