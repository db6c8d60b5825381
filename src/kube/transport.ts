// Connections to one API server: HTTP/1.1 with keep-alive, TLS, proxies. A new client identity gets new connections and
// the old ones are closed once idle; streams that hold an old connection are ended so that they come back on a new one.
// A stream has a connection of its own, which ends with it: behind a balancer it may come back to another server, and a
// kept connection would hold on to the first request it was made for.
import http from 'node:http';
import https from 'node:https';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { transportError } from './api-error.ts';
import type { Credentials, Identity } from './credentials.ts';
import type { ClusterAccess, TlsIdentity } from './kubeconfig.ts';

export type HttpRequest = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query. */
  readonly target: string;
  readonly body?: string;
  readonly contentType?: string;
  /** Streams are ended when the identity or the connections change. */
  readonly stream?: boolean;
};

export type TransportDeps = { clock: Clock; credentials: Credentials };
export type TransportOptions = { userAgent: string; connectTimeoutMs?: number };

type Pool = {
  readonly agent: http.Agent;
  readonly streamAgent: http.Agent;
  readonly tls: TlsIdentity | undefined;
  readonly streams: Set<http.ClientRequest>;
};

const CONNECT_TIMEOUT_MS = 5000;
const TCP_KEEPALIVE_MS = 15_000;
const IDLE_SOCKET_MS = 90_000;

export class Transport {
  readonly #deps: TransportDeps;
  readonly #access: ClusterAccess;
  readonly #o: TransportOptions;
  readonly #base: URL;
  #pool: Pool | undefined;

  constructor(deps: TransportDeps, access: ClusterAccess, options: TransportOptions) {
    this.#deps = deps;
    this.#access = access;
    this.#o = options;
    this.#base = new URL(access.server);
  }

  get host(): string {
    return this.#base.host;
  }

  /** Sends one request and resolves with the response's head; the caller reads the body. */
  async send(request: HttpRequest, signal: AbortSignal): Promise<http.IncomingMessage> {
    for (let attempt = 0; ; attempt++) {
      const identity = await this.#deps.credentials.current(signal);
      const pool = this.#poolFor(identity.tls);
      const { response, reused, error } = await this.#exchange(pool, request, identity, signal);
      if (response !== undefined) return response;
      // The server closed a kept connection just as we used it: not a failure, once.
      if (reused && attempt === 0 && !signal.aborted) continue;
      throw transportError(`${request.method} ${request.target.split('?')[0] ?? ''}`, error, signal);
    }
  }

  /** Tells the credentials that the server refused them; true when a repeat makes sense. */
  refused(): boolean {
    return this.#deps.credentials.refused();
  }

  /** Drops every connection, also those in use: the other side may be gone without having said so. */
  resetConnections(): void {
    const pool = this.#pool;
    this.#pool = undefined;
    if (pool === undefined) return;
    for (const stream of pool.streams) stream.destroy(new KubeletError('unavailable', 'connections were reset'));
    pool.agent.destroy();
    pool.streamAgent.destroy();
  }

  #poolFor(tls: TlsIdentity | undefined): Pool {
    if (this.#pool !== undefined && this.#pool.tls === tls) return this.#pool;
    if (this.#pool !== undefined) retire(this.#pool);
    this.#pool = { agent: this.#newAgent(tls, true), streamAgent: this.#newAgent(tls, false), tls, streams: new Set() };
    return this.#pool;
  }

  #newAgent(tls: TlsIdentity | undefined, keepAlive: boolean): http.Agent {
    const { ca, insecure, tlsServerName, proxyUrl } = this.#access;
    const common: http.AgentOptions = {
      keepAlive,
      keepAliveMsecs: TCP_KEEPALIVE_MS,
      maxFreeSockets: 8,
      timeout: IDLE_SOCKET_MS,
      scheduling: 'lifo',
      proxyEnv: proxyUrl === undefined ? process.env : { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl },
    };
    const agent =
      this.#base.protocol === 'http:'
        ? new http.Agent(common)
        : new https.Agent({
            ...common,
            ...(ca === undefined ? {} : { ca }),
            ...(tls === undefined ? {} : { cert: tls.cert, key: tls.key }),
            ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
            rejectUnauthorized: !insecure,
            minVersion: 'TLSv1.2',
          });
    // All connections of an agent lead to one server with one identity. The usual name has both certificates in it, put
    // together anew for every request.
    agent.getName = () => this.#base.host;
    return agent;
  }

  #exchange(
    pool: Pool,
    request: HttpRequest,
    identity: Identity,
    signal: AbortSignal,
  ): Promise<{ response?: http.IncomingMessage; reused: boolean; error?: unknown }> {
    return new Promise((resolve) => {
      const send = this.#base.protocol === 'http:' ? http.request : https.request;
      const req = send({
        protocol: this.#base.protocol,
        hostname: this.#base.hostname.replace(/^\[|\]$/g, ''),
        port: this.#base.port,
        path: joinPath(this.#base, request.target),
        method: request.method,
        agent: request.stream === true ? pool.streamAgent : pool.agent,
        signal,
        headers: headersOf(request, identity, this.#o.userAgent),
      });
      if (request.stream === true) {
        pool.streams.add(req);
        req.once('socket', (socket) => socket.setKeepAlive(true, TCP_KEEPALIVE_MS));
        req.once('close', () => pool.streams.delete(req));
      }
      const timer = this.#guardConnect(req);
      req.once('response', (response) => {
        timer.cancel();
        resolve({ response, reused: req.reusedSocket });
      });
      req.on('error', (error) => {
        timer.cancel();
        resolve({ reused: req.reusedSocket && isConnectionLoss(error), error });
      });
      req.end(request.body);
    });
  }

  /** A connection must stand, TLS included, within a few seconds: a black hole must not cost minutes. */
  #guardConnect(req: http.ClientRequest): { cancel(): void } {
    const ms = this.#o.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    const timer = this.#deps.clock.after(ms, () =>
      req.destroy(new KubeletError('unavailable', `no connection to ${this.#base.host} in ${ms}ms`)),
    );
    req.once('socket', (socket) => {
      if (!socket.connecting) return timer.cancel();
      socket.once(this.#base.protocol === 'http:' ? 'connect' : 'secureConnect', () => timer.cancel());
    });
    return timer;
  }
}

const LOSS = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);
const isConnectionLoss = (err: Error): boolean => 'code' in err && typeof err.code === 'string' && LOSS.has(err.code);

const headersOf = (request: HttpRequest, identity: Identity, userAgent: string): http.OutgoingHttpHeaders => ({
  Accept: 'application/json',
  'User-Agent': userAgent,
  ...(identity.authorization === undefined ? {} : { Authorization: identity.authorization }),
  ...(request.body === undefined
    ? {}
    : {
        'Content-Type': request.contentType ?? 'application/json',
        'Content-Length': Buffer.byteLength(request.body),
      }),
});

/** The server's address may have a path of its own (a gateway in front of it). */
const joinPath = (base: URL, target: string): string => `${base.pathname.replace(/\/+$/, '')}${target}`;

/** Requests under way finish, their connections are not kept; streams end now. */
function retire(pool: Pool): void {
  for (const stream of pool.streams) stream.destroy(new KubeletError('unavailable', 'the client certificate rotated'));
  pool.agent.maxFreeSockets = 0;
  for (const sockets of Object.values(pool.agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}
