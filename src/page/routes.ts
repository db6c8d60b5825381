// The page's paths: its files, its answers as JSON, live views and logs. The same on every port that serves it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { podKey, type Pod } from '../core/pod.ts';
import type { Endpoint, Exchange, Handler, Route } from '../server/router.ts';
import { COOKIE, isOwnSite, tokenInLink } from './access.ts';
import type { Assets } from './assets.ts';
import type { LiveViews, Topic } from './live.ts';
import { MAX_TAIL_LINES, streamLogs } from './log-stream.ts';
import type { PagePorts } from './ports.ts';
import type { PageToken } from './token.ts';
import { nowTopic, podsTopic, wholeTopic } from './topics.ts';
import type { PageViews } from './views.ts';

export type PageRouteDeps = {
  readonly ports: PagePorts;
  readonly views: PageViews;
  readonly live: LiveViews;
  readonly assets: Assets;
  /** On the page's own port: whoever brings it in a link gets the cookie. */
  readonly token?: PageToken;
  /** Whether anything may be changed here. */
  readonly write?: boolean;
};

/** Nothing but the page's own files, and nobody may show it in a frame. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

const DEFAULT_TAIL_LINES = 300;
const COOKIE_SECONDS = 12 * 3600;
const TIMELINE_MS = 60_000;
const PULLS_MS = 1000;

export function pageRoutes(deps: PageRouteDeps): Endpoint {
  const { views } = deps;
  const get = (path: string, handle: Handler): Route => ({ path, methods: ['GET'], handle: guarded(handle) });
  return {
    roots: [{ prefix: '/page', slashOnly: true }, ...(deps.token === undefined ? [] : [{ prefix: '/', exact: true }])],
    routes: [
      get('/', (exchange) => enter(deps, exchange)),
      get('/page/', (exchange) => enter(deps, exchange)),
      get('/page/assets/{file}', (exchange) => serveAsset(deps.assets, exchange, exchange.params['file'] ?? '')),
      get('/page/api/now', async ({ response, signal }) => answer(response, await views.now(undefined, signal))),
      get('/page/api/pods', async ({ response, signal }) => answer(response, await views.pods(signal))),
      get('/page/api/pods/{namespace}/{name}', async ({ params, response, signal }) =>
        answer(response, await views.pod(params['namespace'] ?? '', params['name'] ?? '', signal)),
      ),
      get('/page/api/images', ({ response }) => answer(response, views.images())),
      get('/page/api/timeline', ({ response }) => answer(response, views.timeline())),
      get('/page/api/workers', ({ response }) => answer(response, views.workers())),
      get('/page/api/live', (exchange) => serveLive(deps, exchange)),
      get('/page/api/logs/{namespace}/{name}', (exchange) => serveLogs(deps, exchange)),
      ...(deps.write === true ? [retryRoute(deps)] : []),
    ],
  };
}

/** Another site cannot send this: the guard knows where a request comes from, and the cookie stays at home. */
const retryRoute = ({ ports }: PageRouteDeps): Route => ({
  path: '/page/api/retry/{namespace}/{name}',
  methods: ['POST'],
  handle: guarded(({ params, response }) => {
    const pod = ports.pods.byName(params['namespace'] ?? '', params['name'] ?? '');
    if (pod === undefined) return plain(response, 404, 'there is no such pod on this node');
    ports.log.info('a pod is to be tried again at once', { pod: podKey(pod) });
    ports.pod.retry(pod);
    response.statusCode = 204;
    response.end();
  }),
});

/** Also where another guard has let the caller in: client certificates are sent along by browsers, whoever asks. */
const guarded =
  (handle: Handler): Handler =>
  (exchange) => {
    for (const [name, value] of Object.entries(PAGE_HEADERS)) exchange.response.setHeader(name, value);
    if (isOwnSite(exchange.request, exchange.path)) return handle(exchange);
    plain(exchange.response, 403, 'Forbidden: the request comes from another site');
  };

/** A link with the token leads to the page without it: it must not stay in the address bar and the history. */
async function enter({ token, assets }: PageRouteDeps, exchange: Exchange): Promise<void> {
  const { request, response, path } = exchange;
  if (path === '/page/' && tokenInLink(request.url) === undefined) return serveAsset(assets, exchange, 'index.html');
  if (token !== undefined && tokenInLink(request.url) !== undefined)
    response.setHeader(
      'Set-Cookie',
      `${COOKIE}=${token.cookie}; Path=/page/; Max-Age=${COOKIE_SECONDS}; HttpOnly; SameSite=Strict${isTls(request) ? '; Secure' : ''}`,
    );
  response.statusCode = 303;
  response.setHeader('Location', path === '/' ? 'page/' : './');
  response.end();
}

const isTls = ({ socket }: IncomingMessage): boolean => (socket as { encrypted?: unknown }).encrypted === true;

async function serveAsset(assets: Assets, { request, response }: Exchange, name: string): Promise<void> {
  const found = await assets.get(name);
  if (found === undefined) return plain(response, 404, 'no such file');
  response.setHeader('Cache-Control', 'no-cache');
  response.setHeader('ETag', found.tag);
  if (request.headers['if-none-match'] === found.tag) {
    response.statusCode = 304;
    response.end();
    return;
  }
  response.setHeader('Content-Type', found.type);
  response.setHeader('Content-Length', found.body.length);
  response.end(found.body);
}

function answer(response: ServerResponse, value: object | undefined): void {
  if (value === undefined) return plain(response, 404, 'there is no such pod on this node');
  const body = `${JSON.stringify(value)}\n`;
  response.setHeader('Content-Type', 'application/json');
  response.setHeader('Content-Length', Buffer.byteLength(body));
  response.end(body);
}

function plain(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status;
  response.setHeader('Content-Type', 'text/plain; charset=utf-8');
  response.end(`${text}\n`);
}

async function serveLive(deps: PageRouteDeps, { query, response, signal, stop }: Exchange): Promise<void> {
  const view = query.get('view') ?? 'now';
  const [namespace, name] = [query.get('namespace') ?? '', query.get('name') ?? ''];
  const open = topicOf(deps, view, namespace, name);
  if (open === undefined) return plain(response, 404, 'no such view');
  await deps.live.visit(`${view} ${namespace}/${name}`, open, response, signal, stop);
}

function topicOf(
  { ports, views }: PageRouteDeps,
  view: string,
  namespace: string,
  name: string,
): (() => Topic) | undefined {
  const { timeline } = ports.records;
  switch (view) {
    case 'now':
      return () => nowTopic(views);
    case 'pods':
      return () => podsTopic(ports, views);
    case 'pod':
      return () =>
        wholeTopic('pod', (signal) => views.pod(namespace, name, signal), {
          onChange: (wake) => ports.records.touches.onChange(wake),
        });
    case 'images':
      return () => wholeTopic('images', () => views.images(), { everyMs: PULLS_MS });
    case 'timeline':
      return () =>
        wholeTopic('timeline', () => views.timeline(), {
          everyMs: TIMELINE_MS,
          onChange: (wake) => timeline.onEntry(wake),
        });
    case 'workers':
      return () => wholeTopic('workers', () => views.workers());
    default:
      return undefined;
  }
}

async function serveLogs({ ports }: PageRouteDeps, exchange: Exchange): Promise<void> {
  const { params, query, response, signal } = exchange;
  const pod = ports.pods.byName(params['namespace'] ?? '', params['name'] ?? '');
  if (pod === undefined) return plain(response, 404, 'there is no such pod on this node');
  const asked = query.getAll('container');
  const containers = namesOf(pod).filter((name) => asked.length === 0 || asked.includes(name));
  const tail = Number(query.get('tail') ?? DEFAULT_TAIL_LINES);
  const tailLines = Number.isInteger(tail) ? Math.min(Math.max(tail, 1), MAX_TAIL_LINES) : DEFAULT_TAIL_LINES;
  const request = {
    containers,
    follow: query.get('follow') === '1',
    previous: query.get('previous') === '1',
    tailLines,
  };
  await streamLogs({ clock: ports.clock, source: ports.pod.logs }, pod, request, response, signal);
}

const namesOf = ({ spec }: Pod): readonly string[] =>
  [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])].map((c) => c.name);
