// The API server of the simulated cluster: the embedded one's registry, routes and watches, without HTTP below. Faults sit in
// front of it: it may refuse, be silent, answer with an error, or break all connections.
import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { admission } from '../../../src/devcluster/api/admission.ts';
import { authorize, refusal } from '../../../src/devcluster/api/auth/authorize.ts';
import { sendError } from '../../../src/devcluster/api/exchange.ts';
import { Registry } from '../../../src/devcluster/api/registry.ts';
import { requestInfo } from '../../../src/devcluster/api/request-info.ts';
import { Router, type RouterDeps } from '../../../src/devcluster/api/router.ts';
import { ObjectStore } from '../../../src/devcluster/api/store.ts';
import { STRATEGIES } from '../../../src/devcluster/api/strategies/strategies.ts';
import { WatchHub } from '../../../src/devcluster/api/watch-hub.ts';
import { seedCluster } from '../../../src/devcluster/seed.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { ApiNetwork, ApiRequest, ApiSink } from '../engine/machine.ts';
import { LaggingReplica, newerThan } from './lagging-replica.ts';

const WATCH_WINDOW = 500;
const NODE_USER = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };
const ADMIN = { name: 'admin', groups: ['system:masters'] };

/** What one request meets instead of an answer. */
export type ApiFault = { readonly status: number; readonly retryAfter?: number } | 'lost' | undefined;

export type Answer = { readonly status: number; readonly body: string };

export class SimApiServer implements ApiNetwork {
  readonly broken = new EventEmitter().setMaxListeners(0);
  readonly store = new ObjectStore(':memory:');
  readonly registry: Registry;
  readonly hub: WatchHub;
  readonly #router: Router;
  /** Another server of the cluster, which takes the agent's lists and watches while it is behind. */
  readonly replica: LaggingReplica;
  /** A watch is told so many changes once more. */
  replay = 0;
  /** How it can be reached. */
  state: 'yes' | 'refused' | 'silent' = 'yes';
  /** Asked for every request of the agent. */
  fault: (request: ApiRequest) => ApiFault = () => undefined;
  /** Told of every answered request of the agent. */
  onServed: (request: ApiRequest, status: number) => void = () => undefined;
  /** Of objects other than leases and events, so far. */
  changes = 0;
  readonly #open = new Set<() => void>();

  constructor() {
    this.store.onChange(({ resource }) => {
      if (resource !== 'events' && resource !== 'coordination.k8s.io/leases') this.changes++;
    });
    this.registry = new Registry({ store: this.store, clock: systemClock }, STRATEGIES, admission(this.store));
    this.hub = new WatchHub(this.store, { windowSize: WATCH_WINDOW });
    const unused = {} as RouterDeps['proxy'];
    const deps: RouterDeps = {
      registry: this.registry,
      hub: this.hub,
      clock: systemClock,
      authenticator: unused as unknown as RouterDeps['authenticator'],
      tokens: { issue: () => ({ token: 'simulated', expiresAtMs: 0 }) } as unknown as RouterDeps['tokens'],
      proxy: unused,
      address: () => 'api:6443',
    };
    this.#router = new Router(deps);
    this.replica = new LaggingReplica(this.store, deps, WATCH_WINDOW);
    this.hub.attach();
    seedCluster(this.registry, 'CA', { ip: '10.96.0.1', port: 443 }, { targetPort: 6443, endpoint: undefined });
  }

  reach(): 'refused' | 'silent' | 'yes' {
    return this.state;
  }

  /** All connections end; nobody knows what became of requests under way. */
  breakConnections(): void {
    this.broken.emit('broken');
    this.closeWatches();
  }

  closeWatches(): void {
    for (const close of Array.from(this.#open)) close();
  }

  /** Forgets the past: a watch that begins earlier is told so. */
  compact(): void {
    this.hub.compact();
    this.#router.objects.forgetPages();
    this.replica.compact();
  }

  serve(request: ApiRequest, sink: ApiSink): () => void {
    const fault = this.fault(request);
    if (fault !== undefined && fault !== 'lost') {
      const headers = fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) };
      this.onServed(request, fault.status);
      const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: fault.status, message: 'simulated' };
      const reason = { 409: 'Conflict', 410: 'Expired', 429: 'TooManyRequests', 500: 'InternalError' }[fault.status];
      sink.head(fault.status, { 'content-type': 'application/json', ...headers });
      sink.write(JSON.stringify({ ...status, reason }));
      sink.end();
      return () => undefined;
    }
    const { router, since, ...taken } = this.replica.takes(request) ?? {
      router: this.#router,
      request: replayed(request, this.replay),
      since: 0,
    };
    const response = new Response(since > 0 ? newerThan(since, sink) : sink, fault === 'lost');
    const close = (): void => {
      this.#open.delete(close);
      response.close();
    };
    this.#open.add(close);
    void this.#route(router, taken.request, response as unknown as ServerResponse & Response, NODE_USER).then(() => {
      this.onServed(request, response.statusCode);
    });
    response.once('finish', () => this.#open.delete(close));
    return close;
  }

  /** A request of somebody else in the cluster, answered at once. */
  async admin(method: string, path: string, body?: unknown, type = 'application/merge-patch+json'): Promise<Answer> {
    let text = '';
    let status = 0;
    const sink: ApiSink = {
      head: (code) => (status = code),
      write: (chunk) => (text += chunk),
      end: () => undefined,
      fail: () => undefined,
    };
    const headers: Record<string, string> =
      body === undefined ? {} : { 'content-type': method === 'PATCH' ? type : 'application/json' };
    const response = new Response(sink, false);
    const request = { method, path, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    await this.#route(this.#router, request, response as unknown as ServerResponse & Response, ADMIN);
    return { status, body: text };
  }

  async #route(router: Router, request: ApiRequest, response: ServerResponse, user: typeof ADMIN): Promise<void> {
    try {
      const url = new URL(request.path, 'https://server');
      const info = requestInfo(request.method, url.pathname, url.searchParams);
      const verdict = authorize(this.store, user, info);
      if (!verdict.allowed) throw refusal(user, info, verdict.reason);
      const body = new Readable({ read: () => undefined });
      if (request.body !== undefined) body.push(Buffer.from(request.body));
      body.push(null);
      const incoming = Object.assign(body, { method: request.method, url: request.path, headers: request.headers });
      await router.route({
        request: incoming as unknown as IncomingMessage,
        response,
        query: url.searchParams,
        info,
        user,
      });
    } catch (err) {
      sendError(response, err);
    }
  }
}

/** The same watch, begun so many versions earlier. */
function replayed(request: ApiRequest, versions: number): ApiRequest {
  const since = /\bresourceVersion=(\d+)/.exec(request.path)?.[1];
  if (versions === 0 || since === undefined || !request.path.includes('watch=')) return request;
  const earlier = Math.max(1, Number(since) - versions);
  return { ...request, path: request.path.replace(/\bresourceVersion=\d+/, `resourceVersion=${earlier}`) };
}

/** As much of a ServerResponse as the embedded server uses. */
class Response extends EventEmitter {
  statusCode = 200;
  headersSent = false;
  writableEnded = false;
  readonly writableLength = 0;
  readonly #sink: ApiSink;
  readonly #isLost: boolean;
  readonly #headers: Record<string, string> = {};

  constructor(sink: ApiSink, isLost: boolean) {
    super();
    this.#sink = sink;
    this.#isLost = isLost;
  }

  setHeader(name: string, value: unknown): this {
    this.#headers[name.toLowerCase()] = String(value);
    return this;
  }
  getHeader = (name: string): string | undefined => this.#headers[name.toLowerCase()];

  flushHeaders(): void {
    if (this.headersSent) return;
    this.headersSent = true;
    if (!this.#isLost) this.#sink.head(this.statusCode, this.#headers);
  }

  write(chunk: string | Buffer): boolean {
    if (this.writableEnded) return false;
    this.flushHeaders();
    if (!this.#isLost) this.#sink.write(chunk.toString());
    return true;
  }

  end(chunk?: string | Buffer): this {
    if (this.writableEnded) return this;
    this.flushHeaders();
    if (chunk !== undefined) this.write(chunk);
    this.writableEnded = true;
    if (this.#isLost) this.#sink.fail(new Error('read ECONNRESET'));
    else this.#sink.end();
    this.emit('finish');
    this.emit('close');
    return this;
  }

  /** The other side is gone. */
  close(): void {
    if (this.writableEnded) return;
    this.writableEnded = true;
    this.emit('close');
  }

  destroy(): this {
    this.close();
    this.#sink.fail(new Error('read ECONNRESET'));
    return this;
  }
}
