// The node page as one part: what to serve where, who may see it, and what runs for it.
import { join } from 'node:path';
import { aborted } from '../lib/abort.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { retryUntilDone, type RetryDeps } from '../lib/retry.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { Guard } from '../server/guard.ts';
import type { Endpoint } from '../server/router.ts';
import { PageAccess } from './access.ts';
import { Assets } from './assets.ts';
import { LiveViews } from './live.ts';
import type { PagePorts } from './ports.ts';
import { PAGE_HEADERS, pageRoutes } from './routes.ts';
import { openToken, type OpenedToken } from './token.ts';
import { PageViews } from './views.ts';

export type PageOptions = {
  readonly rootDir: string;
  readonly address: string;
  /** 0: no port of its own. */
  readonly port: number;
  readonly write: boolean;
  readonly nodeName: string;
  /** Of this node. */
  readonly addresses: () => readonly string[];
};

/** What a port of its own is made with. */
export type OwnPort = {
  readonly deps: { readonly endpoint: Endpoint; readonly guard: PageAccess; readonly log: Logger };
  readonly options: {
    readonly name: string;
    readonly address: string;
    readonly port: number;
    readonly headers: Readonly<Record<string, string>>;
  };
  /** Beyond this machine the page is served with TLS only. */
  readonly tls: <Tls>(tls: Tls) => { readonly tls?: Tls };
  /** A page that cannot be opened, because its port is taken, costs the node nothing else. */
  readonly optional: (part: Runnable) => Runnable;
};

export type OwnPortDeps = {
  /** The main port's routes for exec; used with write access only. */
  readonly streams: Endpoint;
  /** The main port's guard, for client certificates. */
  readonly guard: Pick<Guard, 'decide'>;
};

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/;

export class NodePage {
  readonly #ports: PagePorts;
  readonly #o: PageOptions;
  readonly #assets = new Assets();

  constructor(ports: PagePorts, options: PageOptions) {
    this.#ports = ports;
    this.#o = options;
  }

  /** For ports that know by themselves who may see it. Read-only. */
  endpoint(): Endpoint {
    const views = new PageViews(this.#ports, { write: false });
    return pageRoutes({
      ports: this.#ports,
      views,
      live: new LiveViews(this.#ports.clock, this.#ports.log),
      assets: this.#assets,
    });
  }

  /** None where it is switched off. */
  async ownPorts({ streams, guard }: OwnPortDeps): Promise<readonly OwnPort[]> {
    const { rootDir, address, port, write, nodeName } = this.#o;
    if (port === 0) return [];
    const { clock, log } = this.#ports;
    const opened = await openToken(join(rootDir, 'node-page'));
    const { token, file } = opened;
    const views = new PageViews(this.#ports, { write });
    const pages = pageRoutes({
      ports: this.#ports,
      views,
      live: new LiveViews(this.#ports.clock, this.#ports.log),
      assets: this.#assets,
      token,
      write,
    });
    const isLoopback = LOOPBACK.test(address);
    const url = `${isLoopback ? 'http' : 'https'}://${isLoopback ? address : nodeName}:${port}/`;
    // Never the token: others than root may read the log.
    log.info('node page', { url, tokenFile: file });
    const hosts = new Set([
      'localhost',
      '127.0.0.1',
      '::1',
      ...(isLoopback ? [] : [nodeName, address, ...this.#o.addresses()]),
    ]);
    return [
      {
        optional: (part) => keepingToken(optional(part, log), { clock, log }, opened),
        tls: (tls) => (isLoopback ? {} : { tls }),
        deps: {
          endpoint: write ? { ...pages, routes: [...pages.routes, ...execRoutes(streams)] } : pages,
          guard: new PageAccess(
            { token, ...(isLoopback ? {} : { certified: guard }) },
            { hosts: new Set([...hosts].map((host) => host.toLowerCase())), tokenFile: file },
          ),
          log,
        },
        options: { name: 'node-page', address, port, headers: PAGE_HEADERS },
      },
    ];
  }
}

/** exec alone, below the page's own path. */
const execRoutes = ({ routes }: Endpoint): Endpoint['routes'] =>
  routes
    .filter((route) => route.path === '/exec/{namespace}/{pod}/{container}')
    .map((route) => ({ ...route, path: `/page${route.path}` }));

type Keeping = Pick<OpenedToken, 'file' | 'keep'>;

/** The page is served before its token is in its file, which a full disk may not take for a while. */
const keepingToken = (part: Runnable, deps: RetryDeps, { file, keep }: Keeping): Runnable => ({
  name: part.name,
  run: async (signal) => {
    const message = 'token of the node page was not written, trying again';
    const kept = keep === undefined ? undefined : retryUntilDone(deps, { message, path: file }, keep, signal);
    await Promise.all([part.run(signal), kept]);
  },
});

const optional = (part: Runnable, log: Logger): Runnable => ({
  name: part.name,
  run: async (signal) => {
    try {
      await part.run(signal);
    } catch (err) {
      if (signal.aborted) throw err;
      log.warn('the node page could not be opened', { err: messageOf(err) });
      await aborted(signal);
    }
  },
});
