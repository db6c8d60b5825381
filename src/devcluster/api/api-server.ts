// The HTTPS server: who asks, may they, what is answered. One process, one node's world.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import { ApiError, internal, noSuchPath, unauthorized } from './api-error.ts';
import { Authenticator } from './auth/authenticate.ts';
import { authorize, refusal } from './auth/authorize.ts';
import { impersonated } from './auth/impersonate.ts';
import { TokenIssuer } from './auth/tokens.ts';
import { sendError, type Exchange } from './exchange.ts';
import { createHttpServer } from './http-server.ts';
import { KubeletProxy, refuseUpgrade } from './kubelet-proxy.ts';
import { admission } from './admission.ts';
import type { ClusterPki } from './pki/pki.ts';
import { Registry } from './registry.ts';
import { requestInfo } from './request-info.ts';
import { findResource } from './resources.ts';
import { Router } from './router.ts';
import type { ObjectStore } from './store.ts';
import { STRATEGIES } from './strategies/strategies.ts';
import { WatchHub } from './watch-hub.ts';

/** One answered request; a watch counts as answered when it begins. */
export type ServedRequest = {
  readonly atMs: number;
  readonly method: string;
  readonly url: string;
  /** Empty when nobody could be recognised. */
  readonly user: string;
  /** Which certificate or token proved it, as `authentication.kubernetes.io/credential-id` has it; may be empty. */
  readonly credential: string;
  readonly userAgent: string;
  readonly code: number;
};

export type ApiServerDeps = {
  readonly store: ObjectStore;
  readonly pki: ClusterPki;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told about every request, as an audit log is. */
  readonly observe?: (served: ServedRequest) => void;
};
export type ApiServerOptions = {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** How many past changes of each resource a watch can start from. */
  readonly watchWindow: number;
  /** Service account tokens live no longer than this, whatever is asked for. */
  readonly maxTokenSeconds?: number;
};

const RETRY_LISTEN_MS = 2000;

export class ApiServer {
  readonly registry: Registry;
  readonly hub: WatchHub;
  readonly tokens: TokenIssuer;
  readonly proxy: KubeletProxy;
  readonly #deps: ApiServerDeps;
  readonly #options: ApiServerOptions;
  readonly #authenticator: Authenticator;
  readonly #router: Router;
  readonly #sockets = new Set<Socket>();
  readonly #extra = new Map<string, Server>();
  #server: Server | undefined;
  #detach: () => void = () => undefined;

  constructor(deps: ApiServerDeps, options: ApiServerOptions) {
    const { store, clock, pki } = deps;
    this.#deps = deps;
    this.#options = options;
    this.registry = new Registry({ store, clock }, STRATEGIES, admission(store));
    this.hub = new WatchHub(store, { windowSize: options.watchWindow });
    this.tokens = new TokenIssuer(pki.tokenKey, pki.tokenPublicKey, clock, options.maxTokenSeconds);
    this.proxy = new KubeletProxy(store, pki.kubeletClient);
    this.#authenticator = new Authenticator({ store, tokens: this.tokens, clock });
    this.#router = new Router({
      registry: this.registry,
      hub: this.hub,
      clock,
      authenticator: this.#authenticator,
      tokens: this.tokens,
      proxy: this.proxy,
      address: () => `${options.host}:${this.port}`,
    });
  }

  get port(): number {
    const address = this.#server?.address() as AddressInfo | null | undefined;
    return address?.port ?? this.#options.port;
  }

  async listen(): Promise<void> {
    this.#detach = this.hub.attach();
    const server = this.#createServer();
    this.#server = server;
    server.listen(this.#options.port, this.#options.host);
    await once(server, 'listening');
  }

  #createServer(): Server {
    const { pki } = this.#deps;
    const server = createHttpServer(
      { cert: pki.server.certificatePem, key: pki.server.keyPem, ca: pki.caPem },
      (request, response) => void this.#serve(request, response),
    );
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.#upgrade(request, socket, head),
    );
    return server;
  }

  /**
   * Listens on one more address with the same port; tried again while the machine does not have it (the pod bridge
   * comes and goes).
   */
  alsoListen(host: string): void {
    const attempt = (): void => {
      if (this.#server === undefined || this.#extra.has(host)) return;
      const server = this.#createServer();
      server.once('error', () => this.#deps.clock.after(RETRY_LISTEN_MS, attempt));
      server.listen(this.port, host, () => this.#extra.set(host, server));
    };
    attempt();
  }

  /** Forgets the past, as etcd's compaction does: older watches and pages get a 410. */
  compact(): void {
    this.hub.compact();
    this.#router.objects.forgetPages();
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    this.#detach();
    this.hub.closeAll();
    this.proxy.close();
    const all = [server, ...this.#extra.values()];
    const closed = Promise.all(all.map((one) => once(one, 'close')));
    for (const one of all) one.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = this.#deps.clock.monotonic();
    const asker = { name: '', credential: '' };
    try {
      await this.#router.route({ ...this.#enter(request, asker), response });
    } catch (err) {
      const error = sendError(response, err);
      if (error.code >= 500 && !(err instanceof ApiError))
        this.#deps.log.error('request failed', { method: request.method, url: request.url, err });
    } finally {
      this.#deps.observe?.({
        atMs: this.#deps.clock.now(),
        method: request.method ?? '',
        url: request.url ?? '',
        user: asker.name,
        credential: asker.credential,
        userAgent: request.headers['user-agent'] ?? '',
        code: response.statusCode,
      });
      if (this.#deps.log.enabled(6))
        this.#deps.log.debug('request', {
          method: request.method,
          url: request.url,
          code: response.statusCode,
          tookMs: Math.round(this.#deps.clock.monotonic() - started),
        });
    }
  }

  /** Reads what the request is about, who sends it, and refuses what they may not do. */
  #enter(request: IncomingMessage, seen = { name: '', credential: '' }): Omit<Exchange, 'response'> {
    const url = new URL(request.url ?? '/', 'https://server');
    const info = requestInfo(request.method ?? 'GET', url.pathname, url.searchParams);
    const asker = this.#authenticator.authenticate(request);
    if (asker === undefined) throw unauthorized();
    const user = impersonated(this.#deps.store, asker, request);
    seen.name = user.name;
    seen.credential = user.extra?.['authentication.kubernetes.io/credential-id']?.[0] ?? '';
    const verdict = authorize(this.#deps.store, user, info);
    if (!verdict.allowed) throw refusal(user, info, verdict.reason);
    return { request, query: url.searchParams, info, user };
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    try {
      const entered = this.#enter(request);
      const { info } = entered;
      const type = findResource(info.group, info.version, info.resource);
      const sub = type?.subresources.find((s) => s.name === info.subresource);
      if (type === undefined || sub === undefined) throw noSuchPath();
      // The response object is never used on this path: the socket is handed to the kubelet.
      this.proxy.upgrade(entered, type, socket, head);
    } catch (err) {
      refuseUpgrade(socket, err instanceof ApiError ? err : internal('the connection could not be upgraded'));
    }
  }
}
