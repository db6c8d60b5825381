// An API server that answers by script: one step per request, the last step repeats.
import { once } from 'node:events';
import http from 'node:http';
import type { Socket } from 'node:net';
import { freePort } from '../../harness/ports.ts';

export type Step = (res: http.ServerResponse, req: http.IncomingMessage) => void;

export class ScriptedServer {
  readonly requests: { method: string; path: string; query: URLSearchParams }[] = [];
  /** Watches open right now, and the most at any time. */
  open = 0;
  mostOpen = 0;
  readonly #steps: Step[];
  readonly #sockets = new Set<Socket>();
  #server: http.Server;
  port = 0;

  constructor(...steps: Step[]) {
    this.#steps = steps;
    this.#server = this.#create();
  }

  async start(): Promise<this> {
    // Kept while it is stopped.
    if (this.port === 0) this.port = await freePort();
    this.#server.listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  /** As when the process is killed: connections are reset, new ones refused. */
  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server = this.#create();
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  #create(): http.Server {
    const server = http.createServer((req, res) => {
      const url = new URL(req.url ?? '/', 'http://x');
      this.requests.push({ method: req.method ?? '', path: url.pathname, query: url.searchParams });
      if (url.searchParams.get('watch') === 'true') {
        this.mostOpen = Math.max(this.mostOpen, ++this.open);
        res.on('close', () => this.open--);
      }
      const step = this.#steps.length > 1 ? this.#steps.shift() : this.#steps[0];
      step?.(res, req);
    });
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    return server;
  }
}

export type Thing = { metadata: { name: string; namespace: string; uid: string; resourceVersion: string } };
export const thing = (name: string, uid: string, version: number): Thing => ({
  metadata: { name, namespace: 'ns', uid, resourceVersion: String(version) },
});

export const line = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`;
export const bookmark = (version: number, initialEnd = false): string =>
  line('BOOKMARK', {
    metadata: {
      name: '',
      resourceVersion: String(version),
      ...(initialEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
    },
  });

/** Sends `lines` and keeps the watch open. */
export const stream =
  (...lines: string[]): Step =>
  (res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' });
    res.flushHeaders();
    for (const text of lines) res.write(text);
  };

/** Sends `lines` and ends the watch as a server does after its timeout. */
export const streamThenEnd =
  (...lines: string[]): Step =>
  (res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' });
    for (const text of lines) res.write(text);
    res.end();
  };

export const streamThenReset =
  (...lines: string[]): Step =>
  (res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' });
    for (const text of lines) res.write(text);
    setTimeout(() => res.socket?.resetAndDestroy(), 10);
  };

export const failure =
  (code: number, reason: string, headers: Record<string, string> = {}): Step =>
  (res) => {
    res.writeHead(code, { 'Content-Type': 'application/json', ...headers });
    res.end(JSON.stringify({ kind: 'Status', status: 'Failure', message: `${reason}!`, reason, code }));
  };

/** As a server answers that has not got as far as the version asked for. */
export const tooLarge: Step = (res) => {
  const details = { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] };
  const message = 'Timeout: Too large resource version: 9, current: 4';
  res.writeHead(504, { 'Content-Type': 'application/json', 'Retry-After': '3600' });
  res.end(JSON.stringify({ kind: 'Status', status: 'Failure', message, reason: 'Timeout', code: 504, details }));
};

export const list =
  (version: number, items: readonly unknown[], next?: string): Step =>
  (res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify({ metadata: { resourceVersion: String(version), continue: next }, items }));
  };

export const expired = line('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' });
