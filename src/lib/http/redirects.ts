// Where a redirect leads, and requests that follow them.
import type { Clock } from '../clock.ts';
import { httpExchange, type HttpReply, type WholeRequest } from './exchange.ts';
import { HttpError, type HttpTarget } from './open.ts';

export const MAX_REDIRECTS = 10;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const DEFAULT_PORT = { http: 80, https: 443 } as const;

/** Undefined for what this client cannot ask. */
export function targetOf(url: URL): HttpTarget | undefined {
  const scheme = url.protocol.slice(0, -1);
  if (scheme !== 'http' && scheme !== 'https') return undefined;
  const port = url.port === '' ? DEFAULT_PORT[scheme] : Number(url.port);
  return { scheme, host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port, path: url.pathname + url.search };
}

function targetText({ scheme, host, port, path }: HttpTarget): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}${path}`;
}

/** Where the answer sends its reader, if anywhere that makes sense. */
export function redirectTarget(from: HttpTarget, reply: HttpReply): HttpTarget | undefined {
  const { location } = reply.headers;
  if (!REDIRECTS.has(reply.status) || location === undefined) return undefined;
  const base = targetText(from);
  return URL.canParse(location, base) ? targetOf(new URL(location, base)) : undefined;
}

/** `next`: the request to send after a redirect, undefined to take the redirect itself as the answer. */
export async function httpFollow(
  clock: Clock,
  asked: WholeRequest,
  next: (asked: WholeRequest, to: HttpTarget) => WholeRequest | undefined,
  signal: AbortSignal,
): Promise<HttpReply> {
  let request = asked;
  const until = asked.deadlineMs === undefined ? undefined : clock.monotonic() + asked.deadlineMs;
  for (let hops = 0; ; hops++) {
    const left = until === undefined ? {} : { deadlineMs: until - clock.monotonic() };
    const reply = await httpExchange(clock, { ...request, ...left }, signal);
    const to = redirectTarget(request.target, reply);
    const following = to === undefined ? undefined : next(request, to);
    if (following === undefined) return reply;
    if (hops + 1 === MAX_REDIRECTS)
      throw new HttpError('unavailable', `stopped after ${MAX_REDIRECTS} redirects`, {
        stage: 'head',
        connected: true,
      });
    request = following;
  }
}
