// The way to one API server: HTTP/2 where the server speaks it, HTTP/1.1 otherwise. Heartbeats have a connection of their
// own, so that nothing else can hold them up. A new client identity gets new connections; what runs on the old ones may
// finish, and their watches end so that they come back on new ones.
import type { Socket } from 'node:net';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { transportError } from './api-error.ts';
import type { Credentials, Identity } from './credentials.ts';
import { dial } from './dial.ts';
import { LostExchange, type Connections, type Fate, type Outgoing, type Reply } from './exchange.ts';
import { Http1Connections } from './http1-connections.ts';
import { Http2Connection } from './http2-connection.ts';
import { Http2Connections } from './http2-connections.ts';
import { abortable } from '../lib/abort.ts';
import type { ClusterAccess, TlsIdentity } from './kubeconfig.ts';
import { proxyFor, type Environment } from './proxy.ts';
import { Reachability, type Lane } from './reachability.ts';
import type { Recovery } from './recovery.ts';
import { Renewal } from './renewal.ts';
import { withoutEnd } from '../lib/text.ts';

export type HttpRequest = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query. */
  readonly target: string;
  readonly body?: string;
  readonly contentType?: string;
  /** A watch; it is ended when the identity or the connections change. An `optional` one may find no room. */
  readonly stream?: 'required' | 'optional';
  readonly lane?: Lane;
};

export type TransportDeps = {
  clock: Clock;
  credentials: Credentials;
  /** Asked for every connection; the `ca` of the access otherwise. */
  authority?: { current(): Promise<string | undefined> };
};
export type TransportOptions = { userAgent: string; connectTimeoutMs?: number; env?: Environment };

type Pool = {
  readonly tls: TlsIdentity | undefined;
  readonly lanes: Map<Lane, Promise<Connections>>;
  readonly stop: AbortController;
};

const CONNECT_TIMEOUT_MS = 5000;
const MAX_CONNECTIONS: Readonly<Record<Lane, number>> = { main: 2, heartbeat: 1 };
/** Without HTTP/2: connections for requests, and for watches that can do without. */
const HTTP1 = { main: { maxRequests: 6, maxOptional: 16 }, heartbeat: { maxRequests: 2, maxOptional: 0 } } as const;
const MAX_ATTEMPTS = 3;

export class Transport {
  readonly #deps: TransportDeps;
  readonly #access: ClusterAccess;
  readonly #o: TransportOptions;
  readonly #base: URL;
  readonly #reach: Reachability;
  /** Tells when requests go out under another client certificate. */
  readonly renewal = new Renewal();
  #pool: Pool | undefined;

  constructor(deps: TransportDeps, access: ClusterAccess, options: TransportOptions) {
    this.#deps = deps;
    this.#access = access;
    this.#o = options;
    this.#base = new URL(access.server);
    this.#reach = new Reachability(deps.clock);
  }

  /** Tells when the server answers again after it did not. */
  get recovery(): Recovery {
    return this.#reach.recovery;
  }

  get host(): string {
    return this.#base.host;
  }

  /** Sends one request and resolves with the answer's head; the caller reads the body. */
  async send(request: HttpRequest, signal: AbortSignal): Promise<Reply> {
    for (let attempt = 1; ; attempt++) {
      const identity = await this.#deps.credentials.current(signal);
      try {
        const connections = await this.#connections(identity.tls, request.lane ?? 'main', signal);
        const reply = await connections.exchange(this.#outgoing(request, identity), signal);
        this.#reach.answered(reply.status, request.stream === undefined ? 'request' : 'watch');
        return reply;
      } catch (err) {
        const lost = err instanceof LostExchange;
        const isUnsent = err instanceof CertificateRotated;
        const isRepeated = isUnsent || (lost && mayRepeat(request, err.fate));
        if (isRepeated && attempt < MAX_ATTEMPTS && !signal.aborted) continue;
        const failure = transportError(`${request.method} ${pathOf(request)}`, lost ? err.cause : err, signal);
        if (!signal.aborted && !(failure instanceof CertificateRotated)) this.#reach.failed(failure);
        throw failure;
      }
    }
  }

  /** Tells the credentials that the server refused them; true when a repeat makes sense. */
  refused(): boolean {
    return this.#deps.credentials.refused();
  }

  /** Drops every connection, also those in use: the other side may be gone without having said so. */
  resetConnections(): void {
    this.recovery.stop();
    const reason = new KubeletError('unavailable', 'connections were reset');
    this.#leave((connections) => connections.destroy(reason), reason);
  }

  /** The credentials have something new: connections of the old identity end now, not with the next request. */
  async credentialsChanged(signal: AbortSignal): Promise<void> {
    this.#use((await this.#deps.credentials.current(signal)).tls);
  }

  #use(tls: TlsIdentity | undefined): void {
    if (this.#pool === undefined || this.#pool.tls === tls) return;
    const reason = new CertificateRotated();
    this.#leave((connections) => connections.retire(reason), reason);
    this.renewal.renewed();
  }

  #leave(end: (connections: Connections) => void, reason: Error): void {
    const pool = this.#pool;
    this.#pool = undefined;
    if (pool === undefined) return;
    pool.stop.abort(reason);
    // What was being opened has been stopped, and says so to those who wait for it.
    for (const lane of pool.lanes.values()) lane.then(end).catch(() => undefined);
  }

  async #connections(tls: TlsIdentity | undefined, lane: Lane, signal: AbortSignal): Promise<Connections> {
    this.#use(tls);
    const pool = (this.#pool ??= { tls, lanes: new Map(), stop: new AbortController() });
    let opening = pool.lanes.get(lane);
    if (opening === undefined) {
      opening = this.#open(pool, lane);
      pool.lanes.set(lane, opening);
      // Whoever comes next tries anew.
      opening.catch(() => pool.lanes.delete(lane));
    }
    return await abortable(signal, opening);
  }

  /** The first connection shows which protocol the server speaks. */
  async #open(pool: Pool, lane: Lane): Promise<Connections> {
    const first = await this.#dial(pool, lane, ['h2', 'http/1.1'], pool.stop.signal);
    if (!(first instanceof Http2Connection)) {
      const dial = async (signal: AbortSignal): Promise<Socket> => {
        const next = await this.#dial(pool, lane, ['http/1.1'], signal);
        return next instanceof Http2Connection ? this.#changed(pool, lane, next) : next;
      };
      return new Http1Connections({ ...HTTP1[lane], dial }, first);
    }
    const dial = async (signal: AbortSignal): Promise<Http2Connection> => {
      const next = await this.#dial(pool, lane, ['h2', 'http/1.1'], signal);
      return next instanceof Http2Connection ? next : this.#changed(pool, lane, next);
    };
    const onLeft = (): void => {
      for (const other of pool.lanes.values()) other.then((connections) => connections.ask()).catch(() => undefined);
    };
    return new Http2Connections({ maxConnections: MAX_CONNECTIONS[lane], dial, onLeft }, first);
  }

  /** Another server, or another version of it, answers there now: the lane begins anew. */
  #changed(pool: Pool, lane: Lane, connection: Http2Connection | Socket): never {
    const reason = new Error('the server speaks another protocol than before');
    connection.destroy(reason);
    pool.lanes.delete(lane);
    throw new LostExchange(reason, 'unprocessed');
  }

  #dial(pool: Pool, lane: Lane, protocols: readonly string[], signal: AbortSignal): Promise<Http2Connection | Socket> {
    const { clock, authority } = this.#deps;
    const proxy = proxyFor(this.#base, this.#access.proxyUrl, this.#o.env ?? process.env);
    const timeoutMs = this.#o.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    const { insecure, tlsServerName } = this.#access;
    const open = async (): Promise<Http2Connection | Socket> => {
      const ca = authority === undefined ? this.#access.ca : await authority.current();
      const access = {
        insecure,
        ...(ca === undefined ? {} : { ca }),
        ...(tlsServerName === undefined ? {} : { tlsServerName }),
      };
      const options = { server: this.#base, access, proxy, tls: pool.tls, protocols, timeoutMs };
      const { socket, protocol } = await dial(clock, options, signal);
      if (protocol !== 'h2') return socket;
      return await Http2Connection.open(clock, socket, this.#base.host, { timeoutMs }, signal);
    };
    return this.#reach.connect(lane, open, signal);
  }

  #outgoing(request: HttpRequest, identity: Identity): Outgoing {
    const { method, target, body, stream } = request;
    return {
      method,
      path: joinPath(this.#base, target),
      authority: this.#base.host,
      headers: headersOf(request, identity, this.#o.userAgent),
      ...(body === undefined ? {} : { body }),
      ...(stream === undefined ? {} : { stream }),
    };
  }
}

/** Connections were given up for those of a new identity: no word of the server. */
class CertificateRotated extends KubeletError {
  constructor() {
    super('unavailable', 'the client certificate rotated');
  }
}

const mayRepeat = ({ method }: HttpRequest, fate: Fate): boolean =>
  fate === 'unprocessed' || (fate === 'reused' && method !== 'POST');

const pathOf = (request: HttpRequest): string => request.target.split('?')[0] ?? '';

const headersOf = (request: HttpRequest, identity: Identity, userAgent: string): Record<string, string> => ({
  accept: 'application/json',
  'user-agent': userAgent,
  ...(identity.authorization === undefined ? {} : { authorization: identity.authorization }),
  ...(request.body === undefined ? {} : { 'content-type': request.contentType ?? 'application/json' }),
});

/** The server's address may have a path of its own (a gateway in front of it). */
const joinPath = (base: URL, target: string): string => `${withoutEnd(base.pathname, '/')}${target}`;
