// /exec, /attach and /portForward: find the container or sandbox, ask the runtime for an address, and carry the
// client's stream there in the way the client speaks.
import type { Pod } from '../../core/pod.ts';
import type { CriRuntime } from '../../cri/services.ts';
import { isFault } from '../../lib/errors.ts';
import { fullErrorText, GrpcError } from '../../lib/grpc/status.ts';
import type { PodFinder } from '../pods-view.ts';
import { reply } from '../replies.ts';
import type { Endpoint, Exchange, Route } from '../router.ts';
import { passThrough, type StreamDeps } from './pass-through.ts';
import {
  CLOSING_PROTOCOL,
  forwardedPorts,
  isWebSocket,
  streamOptions,
  subprotocolsOf,
  tunnelProtocolOf,
  type StreamOptions,
} from './stream-options.ts';
import { serveTunnel } from './tunnel.ts';
import { serveV5 } from './v5-session.ts';

export type StreamRouteDeps = StreamDeps & {
  readonly finder: PodFinder;
  readonly runtime: Pick<CriRuntime, 'exec' | 'attach' | 'portForward'>;
  /** Gate ExtendWebSocketsToKubelet: WebSockets of the newer protocols end here instead of at the runtime. */
  readonly endWebSockets: boolean;
  /** Told of every WebSocket that ends here. */
  readonly onWebSocket: (subresource: 'exec' | 'attach' | 'portforward') => void;
};

type Serve = (exchange: Exchange, pod: Pod) => Promise<void>;

export function streamRoutes(deps: StreamRouteDeps): Endpoint {
  const inContainer = (name: string, serve: Serve): Route[] =>
    [`/${name}/{namespace}/{pod}/{container}`, `/${name}/{namespace}/{pod}/{uid}/{container}`].map((path) =>
      route(deps, path, serve),
    );
  return {
    roots: [{ prefix: '/exec' }, { prefix: '/attach' }, { prefix: '/portForward' }],
    routes: [
      ...inContainer('exec', (exchange, pod) => serveExec(deps, exchange, pod)),
      ...inContainer('attach', (exchange, pod) => serveAttach(deps, exchange, pod)),
      ...['/portForward/{namespace}/{pod}', '/portForward/{namespace}/{pod}/{uid}'].map((path) =>
        route(deps, path, (exchange, pod) => servePortForward(deps, exchange, pod)),
      ),
    ],
  };
}

const route = (deps: StreamRouteDeps, path: string, serve: Serve): Route => ({
  path,
  methods: ['GET', 'POST'],
  upgrades: true,
  handle: (exchange) => answering(deps, exchange, serve),
});

/** Errors in the order and form clients know: options, pod, container, runtime, and last the upgrade itself. */
async function answering(deps: StreamRouteDeps, exchange: Exchange, serve: Serve): Promise<void> {
  const { params, query, request, response, signal, path } = exchange;
  try {
    if (path.startsWith('/portForward/')) forwardedPorts(request, query);
    else streamOptions(query);
    const pod = deps.finder.pod(params['namespace'] ?? '', params['pod'] ?? '');
    if (pod === undefined) return reply(response, 404, 'pod does not exist');
    await serve(exchange, pod);
  } catch (err) {
    if (signal.aborted || response.socket === null) throw err;
    if (isFault(err, 'invalid') && !(err instanceof GrpcError)) return reply(response, 400, err.message);
    if (isFault(err, 'unavailable') && !(err instanceof GrpcError))
      return reply(response, 500, `${err.message}\n`, { nosniff: true });
    if (err instanceof GrpcError && err.codeName === 'NotFound') return reply(response, 404, err.fullText);
    if (err instanceof GrpcError && err.codeName === 'ResourceExhausted')
      return reply(response, 429, err.fullText, { headers: { 'Retry-After': '60' } });
    reply(response, 500, fullErrorText(err));
  }
}

async function serveExec(deps: StreamRouteDeps, exchange: Exchange, pod: Pod): Promise<void> {
  const { params, query, signal } = exchange;
  const options = streamOptions(query);
  const container = await deps.finder.container(pod, params['uid'], params['container'] ?? '', signal);
  const cmd = query.getAll('command');
  const { url } = await deps.runtime.exec({ containerId: container.id, cmd, ...options }, signal);
  await carry(deps, exchange, 'exec', url, options);
}

async function carry(
  deps: StreamRouteDeps,
  exchange: Exchange,
  subresource: 'exec' | 'attach',
  url: string,
  options: StreamOptions,
): Promise<void> {
  const { request, upgrade } = exchange;
  const endsHere = deps.endWebSockets && isWebSocket(request) && subprotocolsOf(request).includes(CLOSING_PROTOCOL);
  if (!endsHere || upgrade === undefined) return passThrough(deps, exchange, url);
  deps.onWebSocket(subresource);
  await serveV5(deps, exchange, url, options);
}

/** Whether there is a terminal is the container's affair, not the caller's. */
async function serveAttach(deps: StreamRouteDeps, exchange: Exchange, pod: Pod): Promise<void> {
  const { params, query, signal } = exchange;
  const name = params['container'] ?? '';
  const container = await deps.finder.container(pod, params['uid'], name, signal);
  const { spec } = pod;
  const declared = [...spec.containers, ...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])];
  const tty = declared.find((c) => c.name === name)?.tty === true;
  const asked = streamOptions(query);
  const options = { ...asked, tty, stderr: asked.stderr && !tty };
  const { url } = await deps.runtime.attach({ containerId: container.id, ...options }, signal);
  await carry(deps, exchange, 'attach', url, options);
}

async function servePortForward(deps: StreamRouteDeps, exchange: Exchange, pod: Pod): Promise<void> {
  const { params, query, request, response, signal } = exchange;
  const uid = params['uid'] ?? '';
  if (uid !== '' && uid !== pod.metadata.uid) return reply(response, 404, 'pod not found');
  const sandbox = await deps.finder.sandbox(pod, signal);
  const port = [...forwardedPorts(request, query)];
  const { url } = await deps.runtime.portForward({ podSandboxId: sandbox.id, port }, signal);
  const protocol = deps.endWebSockets ? tunnelProtocolOf(request) : undefined;
  if (protocol === undefined || exchange.upgrade === undefined) return passThrough(deps, exchange, url);
  deps.onWebSocket('portforward');
  await serveTunnel(deps, exchange, url, protocol);
}
