// HTTP/2 to one server with one identity: everything shares one connection; when the server takes no more streams on it a
// further one is opened, up to a bound. One that has fallen silent is left as soon as a new one stands.
import { abortable } from '../lib/abort.ts';
import { KubeletError } from '../lib/errors.ts';
import { LostExchange, noRoom, toError, type Connections, type Outgoing, type Reply } from './exchange.ts';
import type { Http2Connection } from './http2-connection.ts';

export type Http2Options = {
  readonly maxConnections: number;
  /** Opens a further one. */
  readonly dial: (signal: AbortSignal) => Promise<Http2Connection>;
  /** A connection was left because it had fallen silent: others may have, too. */
  readonly onLeft?: () => void;
};

/** Streams of a connection that optional watches leave free for requests. */
const KEPT_FREE = 10;

export class Http2Connections implements Connections {
  readonly #o: Http2Options;
  readonly #stop = new AbortController();
  /** Those that take exchanges, and all that stand. */
  readonly #open = new Set<Http2Connection>();
  readonly #all = new Set<Http2Connection>();
  #opening: Promise<void> | undefined;

  constructor(options: Http2Options, first: Http2Connection) {
    this.#o = options;
    this.#add(first);
  }

  get size(): number {
    return this.#all.size;
  }

  async exchange(out: Outgoing, signal: AbortSignal): Promise<Reply> {
    signal.throwIfAborted();
    for (let opened = 0; ; opened++) {
      if (this.#stop.signal.aborted) throw new LostExchange(this.#stop.signal.reason, 'unprocessed');
      // Nothing may come between the choice and the use: all who wait would choose the same.
      const connection = this.#choose(out, opened > this.#o.maxConnections);
      if (connection !== undefined) return await connection.exchange(out, signal);
      await abortable(signal, this.#more());
    }
  }

  ask(): void {
    for (const connection of this.#all) connection.ask();
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

  /** A server that is slow would have to serve new connections as well: the old one stands until a new one does. */
  async #leave(silent: Http2Connection): Promise<void> {
    try {
      await this.#more();
    } catch {
      return; // nobody answers there either
    }
    if (!silent.isSilent) return;
    silent.destroy(new KubeletError('unavailable', 'no answer to a ping, while new connections are answered'));
    this.#o.onLeft?.();
  }

  #more(): Promise<void> {
    this.#opening ??= this.#dial().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #dial(): Promise<void> {
    const connection = await this.#o.dial(this.#stop.signal);
    const { aborted, reason } = this.#stop.signal as { aborted: boolean; reason: unknown };
    if (!aborted) return this.#add(connection);
    connection.destroy(toError(reason));
    throw toError(reason);
  }

  #add(connection: Http2Connection): void {
    connection.onEnd = () => this.#open.delete(connection);
    connection.onSilent = () => void this.#leave(connection);
    connection.onClose = () => this.#all.delete(connection);
    this.#all.add(connection);
    if (!connection.closing) this.#open.add(connection);
  }
}
