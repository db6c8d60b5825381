// The local health endpoint: /healthz and /healthz/ping on a port of its own, and nothing else there, ever.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../lib/clock.ts';
import { errnoOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { answerHealth, type HealthCheck } from './health-checks.ts';

type HealthzDeps = { readonly clock: Clock; readonly log: Logger };
type HealthzOptions = { readonly address: string; readonly port: number };

// An import of node:http also loads its WebSocket client, which takes longer than the rest of the start.
const { createServer } = process.getBuiltinModule('node:http');

const RETRY_MS = 5000;

export class HealthzServer {
  readonly name = 'healthz';
  readonly #deps: HealthzDeps;
  readonly #options: HealthzOptions;
  readonly #first = Promise.withResolvers<void>();
  /** Settles once the first attempt to listen has succeeded or failed. */
  readonly tried: Promise<void> = this.#first.promise;
  /** The port in use; differs from the option only when that is 0 in tests. */
  boundPort: number | undefined;
  /** How often it was told that this process answers. */
  pings = 0;

  constructor(deps: HealthzDeps, options: HealthzOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** A port that is taken is tried again until it is free. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#serve(signal);
      } catch (err) {
        this.#first.resolve();
        this.#deps.log.error('failed to start healthz server', { ...this.#options, errno: errnoOf(err), err });
        await this.#deps.clock.sleep(RETRY_MS, signal);
      }
    }
  }

  #serve(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const server = createServer({ maxHeaderSize: 16 * 1024 }, (request, response) => {
        if (respond(request, response)) this.pings++;
      });
      const stop = (): void => {
        server.close(() => resolve());
        server.closeAllConnections();
      };
      server.once('error', (err) => {
        signal.removeEventListener('abort', stop);
        reject(err);
      });
      server.once('close', () => signal.removeEventListener('abort', stop));
      server.listen(this.#options.port, this.#options.address, () => {
        const bound = server.address();
        this.boundPort = typeof bound === 'object' && bound !== null ? bound.port : undefined;
        this.#first.resolve();
        if (signal.aborted) stop();
        else signal.addEventListener('abort', stop, { once: true });
      });
    });
  }
}

const PING: HealthCheck = { name: 'ping', failing: () => undefined };

/** Gives whether it told that the process answers. */
function respond(request: IncomingMessage, response: ServerResponse): boolean {
  const [path = '', query = ''] = (request.url ?? '').split('?', 2);
  response.setHeader('Content-Type', 'text/plain; charset=utf-8');
  if (path === '/healthz') {
    response.setHeader('X-Content-Type-Options', 'nosniff');
    let isTold = false;
    const { body } = answerHealth([PING], new URLSearchParams(query), () => (isTold = true));
    response.end(body);
    return isTold;
  }
  if (path === '/healthz/ping') {
    response.end('ok');
    return true;
  }
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.writeHead(404).end('404 page not found\n');
  return false;
}
