// One port: takes requests in, lets router and guard decide, and hands them to their route. A handler that throws
// costs its caller a 500 and nobody else anything.
import { chmod, mkdir, rm } from 'node:fs/promises';
import { createServer as createHttp, type IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttps, type Server as HttpsServer, type ServerOptions } from 'node:https';
import type { Server, Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import { childScope, type Scope } from '../lib/abort.ts';
import { errnoOf, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { Guard } from './guard.ts';
import { lingeringEnd } from './lingering-end.ts';
import { pageNotFound, redirect, reply } from './replies.ts';
import { cleanPath, resolve, searchOf, withoutEmptySegments, type Endpoint, type Exchange } from './router.ts';
import type { UserInfo } from './user.ts';

export type TlsSettings = Pick<ServerOptions, 'cert' | 'key' | 'ca' | 'minVersion' | 'ciphers' | 'ecdhCurve'>;

/** Told of every request when it begins; the answer is called when it is over. */
export type RequestObserver = (method: string, path: string) => () => void;

export type ListenerDeps = {
  readonly endpoint: Endpoint;
  /** Absent: everybody may (the read-only port). */
  readonly guard?: Pick<Guard, 'decide'>;
  readonly log: Logger;
  readonly observe?: RequestObserver;
};
export type ListenerOptions = {
  readonly name: string;
  /** A socket of the file system instead of address and port: for root alone, in a folder for root alone. */
  readonly socketPath?: string;
  readonly address: string;
  readonly port: number;
  /** Asked when the port opens: a certificate may have come or changed since. */
  readonly tls?: () => TlsSettings;
  /** On every answer, refusals too. */
  readonly headers?: Readonly<Record<string, string>>;
};

const MAX_HEADER_BYTES = 1024 * 1024;
const IDLE_MS = 90_000;
const REQUEST_MS = 4 * 3_600_000;
/** Finds out within minutes that a client is gone which cannot say so: followed logs and idle streams send nothing. */
const TCP_KEEPALIVE = { enable: true, initialDelay: 15_000, interval: 15_000, count: 9 };

type Upgrade = NonNullable<Exchange['upgrade']>;

export class Listener implements Runnable {
  readonly name: string;
  readonly #deps: ListenerDeps;
  readonly #o: ListenerOptions;
  readonly #sockets = new Set<Socket>();
  #server: Server | HttpsServer | undefined;
  #stop: AbortSignal = new AbortController().signal;
  boundPort: number | undefined;

  constructor(deps: ListenerDeps, options: ListenerOptions) {
    this.#deps = deps;
    this.#o = options;
    this.name = options.name;
  }

  /** New connections get the certificate and client CA of now; idle ones are closed, busy ones stay as they are. */
  renewTls(): void {
    const server = this.#server;
    if (server === undefined || this.#o.tls === undefined || !('setSecureContext' in server)) return;
    try {
      server.setSecureContext(this.#o.tls());
      server.closeIdleConnections();
    } catch (err) {
      this.#deps.log.error('TLS settings are not usable, the old ones stay in force', { listener: this.name, err });
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#stop = signal;
    const server = this.#create();
    this.#server = server;
    const { socketPath, port, address } = this.#o;
    if (socketPath !== undefined) await clearWay(socketPath);
    await new Promise<void>((ready, reject) => {
      server.once('error', reject);
      if (socketPath === undefined) server.listen(port, address, ready);
      else server.listen(socketPath, ready);
    });
    if (socketPath !== undefined) await chmod(socketPath, 0o600);
    const bound = server.address();
    this.boundPort = typeof bound === 'object' && bound !== null ? bound.port : undefined;
    const where = socketPath === undefined ? { address, port: this.boundPort } : { socketPath };
    this.#deps.log.info('listening', { listener: this.name, ...where });
    await new Promise<void>((closed, reject) => {
      server.once('error', reject);
      const close = (): void => {
        server.close(() => closed());
        for (const socket of this.#sockets) socket.destroy();
      };
      if (signal.aborted) close();
      else signal.addEventListener('abort', close, { once: true });
    });
  }

  #create(): Server | HttpsServer {
    const limits = {
      maxHeaderSize: MAX_HEADER_BYTES,
      keepAliveTimeout: IDLE_MS,
      requestTimeout: REQUEST_MS,
      shouldUpgradeCallback: (request: IncomingMessage) => this.#mayUpgrade(request),
    };
    const answer = (request: IncomingMessage, response: ServerResponse): void => void this.#answer(request, response);
    const tls = this.#o.tls?.();
    const server =
      tls === undefined
        ? createHttp(limits, answer)
        : createHttps(
            {
              ...limits,
              ...tls,
              // Without a client CA a certificate would be held against the public ones.
              requestCert: tls.ca !== undefined,
              rejectUnauthorized: false,
              ALPNProtocols: ['http/1.1'],
            },
            answer,
          );
    server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
    server.on('connection', (socket) => {
      socket.setKeepAlive(TCP_KEEPALIVE);
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    server.on('clientError', refuseBroken);
    server.on('tlsClientError', (err) =>
      this.#deps.log.debug('TLS handshake failed', { listener: this.name, errno: errnoOf(err) }),
    );
    return server;
  }

  /** Only streams leave HTTP; a wish to upgrade anything else is ignored, as HTTP allows. */
  #mayUpgrade(request: IncomingMessage): boolean {
    const { path } = splitUrl(request);
    const found = resolve(this.#deps.endpoint, request.method ?? '', path);
    return found.kind === 'route' && found.route.upgrades === true;
  }

  async #answer(request: IncomingMessage, response: ServerResponse, upgrade?: Upgrade): Promise<void> {
    const { path, query } = splitUrl(request);
    const scope = childScope(this.#stop);
    const over = this.#deps.observe?.(request.method ?? '', path);
    (upgrade?.socket ?? response).once('close', () => {
      scope.abort();
      scope.release();
      over?.();
    });
    response.on('error', () => response.destroy());
    for (const [name, value] of Object.entries(this.#o.headers ?? {})) response.setHeader(name, value);
    const exchange = { request, response, path, query, signal: scope.signal, stop: this.#stop };
    try {
      await this.#dispatch(upgrade === undefined ? exchange : { ...exchange, upgrade });
    } catch (err) {
      this.#failed(exchange, scope, err);
    }
  }

  #failed(
    { request, response, path }: Pick<Exchange, 'request' | 'response' | 'path'>,
    scope: Scope,
    err: unknown,
  ): void {
    if (scope.signal.aborted) return void response.destroy();
    this.#deps.log.error('request failed', { method: request.method, path, err });
    if (!response.headersSent && response.socket !== null) reply(response, 500, messageOf(err));
    else response.destroy();
  }

  async #dispatch(exchange: Omit<Exchange, 'params' | 'user'>): Promise<void> {
    const { request, response, path, signal } = exchange;
    const shorter = withoutEmptySegments(path);
    if (shorter !== undefined) return redirect(response, `${shorter}${searchOf(request)}`);
    const found = resolve(this.#deps.endpoint, request.method ?? '', path);
    if (found.kind === 'unknown') return pageNotFound(response);
    if (found.kind === 'redirect') return redirect(response, `${found.location}${searchOf(request)}`);
    const user = await this.#admit(request, response, path, signal);
    if (user === 'refused') return;
    if (found.kind === 'noRoute') return reply(response, 404, '404: Page Not Found');
    if (found.kind === 'wrongMethod')
      return reply(response, 405, '405: Method Not Allowed', { headers: { Allow: found.allow } });
    await found.route.handle({ ...exchange, params: found.params, user });
  }

  async #admit(
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    signal: AbortSignal,
  ): Promise<UserInfo | undefined | 'refused'> {
    if (this.#deps.guard === undefined) return undefined;
    const decision = await this.#deps.guard.decide(request, path, signal);
    if (decision.ok) return decision.user;
    reply(response, decision.status, decision.body);
    return 'refused';
  }

  /** Upgrade requests take the same way; a refusal is an ordinary answer, after which the connection is closed. */
  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // From here on nobody else listens for the socket's errors.
    socket.on('error', () => socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    try {
      response.assignSocket(socket as Socket);
    } catch {
      // An earlier request on this connection is not answered yet: nobody who means well sends the next one so soon.
      socket.destroy();
      return;
    }
    response.on('finish', () => {
      if (response.socket === null) return;
      response.detachSocket(socket as Socket);
      lingeringEnd(socket);
    });
    void this.#answer(request, response, { socket, head });
  }
}

/** A socket file outlives the process that made it when that is killed. */
async function clearWay(socketPath: string): Promise<void> {
  await mkdir(dirname(socketPath), { recursive: true, mode: 0o700 });
  await chmod(dirname(socketPath), 0o700);
  await rm(socketPath, { force: true });
}

function refuseBroken(err: Error, socket: Duplex): void {
  if (!socket.writable || errnoOf(err) === 'ECONNRESET') return void socket.destroy();
  const status = errnoOf(err) === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request';
  socket.end(`HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n${status}`);
}

function splitUrl(request: IncomingMessage): { readonly path: string; readonly query: URLSearchParams } {
  // Some clients send the absolute form.
  const target = (request.url ?? '/').replace(/^https?:\/\/[^/?]*/i, '');
  const at = target.indexOf('?');
  const path = at < 0 ? target : target.slice(0, at);
  return { path: cleanPath(path), query: new URLSearchParams(at < 0 ? '' : target.slice(at + 1)) };
}
