// One port: takes requests in, lets router and guard decide, and hands them to their route. A handler that throws
// costs its caller a 500 and nobody else anything.
import { createServer as createHttp, type IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttps, type Server as HttpsServer, type ServerOptions } from 'node:https';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { childScope } from '../lib/abort.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { Guard } from './guard.ts';
import { pageNotFound, redirect, reply } from './replies.ts';
import { resolve, type Exchange, type Root, type Route } from './router.ts';
import type { UserInfo } from './user.ts';

export type TlsSettings = Pick<ServerOptions, 'cert' | 'key' | 'ca' | 'minVersion' | 'ciphers' | 'ecdhCurve'>;

export type ListenerDeps = {
  readonly roots: readonly Root[];
  readonly routes: readonly Route[];
  /** Absent: everybody may (the read-only port). */
  readonly guard?: Guard;
  readonly log: Logger;
  /** Told about every request when it is over. */
  readonly observe?: (request: {
    readonly method: string;
    readonly path: string;
    readonly status: number;
    readonly ms: number;
  }) => void;
};
export type ListenerOptions = {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly tls?: TlsSettings;
};

const MAX_HEADER_BYTES = 1024 * 1024;
const IDLE_MS = 90_000;
const REQUEST_MS = 4 * 3_600_000;

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

  /** New connections get the new certificate or client CA; open ones stay as they are. */
  renewTls(tls: TlsSettings): void {
    const server = this.#server;
    if (server !== undefined && 'setSecureContext' in server) server.setSecureContext({ ...tls });
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#stop = signal;
    const limits = { maxHeaderSize: MAX_HEADER_BYTES, keepAliveTimeout: IDLE_MS, requestTimeout: REQUEST_MS };
    const answer = (request: IncomingMessage, response: ServerResponse): void => void this.#answer(request, response);
    const { tls } = this.#o;
    const server =
      tls === undefined
        ? createHttp(limits, answer)
        : createHttps(
            { ...limits, ...tls, requestCert: true, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] },
            answer,
          );
    server.on('upgrade', (request, socket, head) => void this.#upgrade(request, socket, head));
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    server.on('clientError', (_err, socket) => socket.destroy());
    this.#server = server;
    await new Promise<void>((ready, reject) => {
      server.once('error', reject);
      server.listen(this.#o.port, this.#o.address, ready);
    });
    const bound = server.address();
    this.boundPort = typeof bound === 'object' && bound !== null ? bound.port : undefined;
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

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    upgrade?: { socket: Duplex; head: Buffer },
  ): Promise<void> {
    const began = performance.now();
    const [rawPath, rawQuery = ''] = splitOnce(request.url ?? '/', '?');
    const path = cleanPath(rawPath);
    const scope = childScope(this.#stop);
    response.on('close', () => {
      scope.abort();
      scope.release();
      this.#deps.observe?.({
        method: request.method ?? '',
        path,
        status: response.statusCode,
        ms: performance.now() - began,
      });
    });
    try {
      await this.#dispatch({
        request,
        response,
        path,
        query: new URLSearchParams(rawQuery),
        signal: scope.signal,
        ...(upgrade === undefined ? {} : { upgrade }),
      });
    } catch (err) {
      if (scope.signal.aborted) return;
      this.#deps.log.error('request failed', { method: request.method, path, err });
      if (!response.headersSent) reply(response, 500, messageOf(err));
      else response.destroy();
    }
  }

  async #dispatch(exchange: Omit<Exchange, 'params' | 'user'>): Promise<void> {
    const { request, response, path, signal } = exchange;
    const found = resolve(this.#deps.roots, this.#deps.routes, request.method ?? '', path);
    if (found.kind === 'unknown') return pageNotFound(response);
    if (found.kind === 'redirect') return redirect(response, found.location);
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
  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket as Socket);
    response.on('finish', () => {
      response.detachSocket(socket as Socket);
      socket.end();
    });
    await this.#answer(request, response, { socket, head });
  }
}

const splitOnce = (text: string, separator: string): [string, string?] => {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
};

/** `.` and `..` are resolved before anything looks at the path. */
function cleanPath(path: string): string {
  const out: string[] = [];
  for (const part of path.split('/').slice(1)) {
    if (part === '..') out.pop();
    else if (part !== '.') out.push(part);
  }
  return `/${out.join('/')}`;
}
