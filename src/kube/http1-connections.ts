// HTTP/1.1 to one server with one identity, for servers that speak nothing newer: a few kept connections for requests, and
// one for each watch, which ends with it. How many watches may have one is bounded.
import http from 'node:http';
import type { Socket } from 'node:net';
import { readableBody } from './readable-body.ts';
import { LostExchange, noRoom, toError, type Connections, type Outgoing, type Reply } from './exchange.ts';

export type Http1Options = {
  readonly maxRequests: number;
  /** Optional watches that may be open at a time. */
  readonly maxOptional: number;
  readonly dial: (signal: AbortSignal) => Promise<Socket>;
};

const IDLE_SOCKET_MS = 90_000;
const SWITCHING = 101;

/** Gets its connections from elsewhere: proxy, TLS and bounds are not its business. */
class DialAgent extends http.Agent {
  readonly #dial: () => Promise<Socket>;
  readonly dialed = new Set<Socket>();

  constructor(options: http.AgentOptions, dial: () => Promise<Socket>) {
    super(options);
    this.#dial = dial;
  }

  override createConnection(_options: unknown, callback?: (err: Error | null, socket: Socket) => void): undefined {
    void this.#connect(callback ?? ((): void => undefined));
  }

  async #connect(done: (err: Error | null, socket: Socket) => void): Promise<void> {
    let socket: Socket;
    try {
      socket = await this.#dial();
    } catch (err) {
      return done(toError(err), undefined as never);
    }
    this.dialed.add(socket);
    socket.once('close', () => this.dialed.delete(socket));
    done(null, socket);
  }

  /** All connections lead to one server with one identity. */
  override getName(): string {
    return 'api';
  }
}

export class Http1Connections implements Connections {
  readonly #o: Http1Options;
  readonly #stop = new AbortController();
  readonly #requests: DialAgent;
  readonly #watches: DialAgent;
  readonly #streams = new Set<http.ClientRequest>();
  #optional = 0;

  /** `first` is a connection that somebody has opened already. */
  constructor(options: Http1Options, first: Socket) {
    this.#o = options;
    let waiting: Socket | undefined = first;
    const drop = (): void => (waiting = undefined);
    first.once('close', drop).once('error', drop);
    const dial = async (): Promise<Socket> => {
      const socket = waiting;
      waiting = undefined;
      return socket ?? (await options.dial(this.#stop.signal));
    };
    const keep = { keepAlive: true, scheduling: 'lifo', maxFreeSockets: options.maxRequests } as const;
    this.#requests = new DialAgent({ ...keep, maxSockets: options.maxRequests, timeout: IDLE_SOCKET_MS }, dial);
    this.#watches = new DialAgent({ keepAlive: false }, dial);
  }

  get size(): number {
    return this.#requests.dialed.size + this.#watches.dialed.size;
  }

  /** The protocol has no means to. */
  ask(): void {}

  exchange(out: Outgoing, signal: AbortSignal): Promise<Reply> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#stop.signal.aborted) throw new LostExchange(this.#stop.signal.reason, 'unprocessed');
      if (out.stream === 'optional' && this.#optional >= this.#o.maxOptional) throw noRoom();
      const { method, path, headers, authority } = out;
      const request = http.request({
        method,
        path,
        signal,
        agent: out.stream === undefined ? this.#requests : this.#watches,
        headers: { ...headers, host: authority, ...lengthOf(out) },
      });
      this.#count(request, out);
      const fail = (err: unknown): void => {
        const fate = request.reusedSocket && isConnectionLoss(err) ? 'reused' : 'unknown';
        reject(signal.aborted ? toError(signal.reason) : new LostExchange(err, fate));
      };
      request.once('response', (response) => {
        if (response.statusCode !== SWITCHING)
          return resolve({
            status: response.statusCode ?? 0,
            header: (name) => response.headers[name]?.toString(),
            body: readableBody(response),
          });
        request.destroy(new Error('the server changed the protocol without saying to which'));
      });
      // Nobody asked for another protocol.
      request.once('upgrade', (response, socket) => {
        socket.destroy();
        fail(new Error(`the server answered ${response.statusCode ?? 0} and changed the protocol`));
      });
      request.on('error', fail);
      request.once('close', () => fail(new Error('the connection was closed without an answer')));
      request.end(out.body);
    });
  }

  retire(reason: Error): void {
    for (const stream of this.#streams) stream.destroy(reason);
    this.#requests.maxFreeSockets = 0;
    for (const sockets of Object.values(this.#requests.freeSockets))
      for (const socket of sockets ?? []) socket.destroy();
  }

  destroy(reason: Error): void {
    this.#stop.abort(reason);
    for (const stream of this.#streams) stream.destroy(reason);
    for (const agent of [this.#requests, this.#watches]) {
      agent.destroy();
      for (const socket of agent.dialed) socket.destroy();
    }
  }

  #count(request: http.ClientRequest, { stream }: Outgoing): void {
    if (stream === undefined) return;
    this.#streams.add(request);
    if (stream === 'optional') this.#optional++;
    request.once('close', () => {
      this.#streams.delete(request);
      if (stream === 'optional') this.#optional--;
    });
  }
}

const lengthOf = ({ body }: Outgoing): Record<string, number> =>
  body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };

const LOSS = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);
const isConnectionLoss = (err: unknown): boolean =>
  err instanceof Error && 'code' in err && typeof err.code === 'string' && LOSS.has(err.code);
