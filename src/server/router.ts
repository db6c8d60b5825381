// Which handler a request belongs to. Two layers, as clients know them: paths under no registered root are unknown to
// everybody; below a root the guard comes first, then the route. Pure.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { UserInfo } from './user.ts';
import { upTo } from '../lib/text.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

export type Exchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly params: Readonly<Record<string, string>>;
  readonly user: UserInfo | undefined;
  /** Set when the client asked to leave HTTP: the raw socket and what came behind the request. */
  readonly upgrade?: { readonly socket: Duplex; readonly head: Buffer };
  /** The caller is gone or the port is being closed. */
  readonly signal: AbortSignal;
  /** The port is being closed. What a caller sent before it left may still be on its way: streams go by this one. */
  readonly stop: AbortSignal;
};

export type Handler = (exchange: Exchange) => Promise<void> | void;

export type Route = {
  /** `/pods`, `/run/{namespace}/{pod}/{container}`, `/logs/{path...}`. */
  readonly path: string;
  /** Absent means any method. */
  readonly methods?: readonly Method[];
  /** The connection may leave HTTP here. */
  readonly upgrades?: boolean;
  readonly handle: Handler;
};

/** A registered prefix: everything below is guarded. `slashOnly`: the bare name is redirected to the one with a slash. */
export type Root = { readonly prefix: string; readonly slashOnly?: boolean; readonly exact?: boolean };

/** What one route file brings along. */
export type Endpoint = { readonly roots: readonly Root[]; readonly routes: readonly Route[] };

export const joined = (endpoints: readonly Endpoint[]): Endpoint => ({
  roots: endpoints.flatMap((e) => e.roots),
  routes: endpoints.flatMap((e) => e.routes),
});

/** One path, nothing below it. */
export const exactly = (path: string, handle: Handler, methods?: readonly Method[]): Endpoint => ({
  roots: [{ prefix: path, exact: true }],
  routes: [{ path, handle, ...(methods === undefined ? {} : { methods }) }],
});

export type Resolution =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'redirect'; readonly location: string }
  | { readonly kind: 'noRoute' }
  | { readonly kind: 'wrongMethod'; readonly allow: string }
  | { readonly kind: 'route'; readonly route: Route; readonly params: Readonly<Record<string, string>> };

export function resolve({ roots, routes }: Endpoint, method: string, path: string): Resolution {
  const root = roots.find((r) => isUnder(r, path));
  if (root === undefined) return { kind: 'unknown' };
  if (root.slashOnly === true && path === root.prefix) return { kind: 'redirect', location: `${path}/` };
  let allowed: readonly string[] = [];
  for (const route of routes) {
    const params = match(route.path, path);
    if (params === undefined) continue;
    if (route.methods === undefined || route.methods.some((m) => m === method)) return { kind: 'route', route, params };
    allowed = [...allowed, ...route.methods];
  }
  return allowed.length > 0 ? { kind: 'wrongMethod', allow: [...new Set(allowed)].join(', ') } : { kind: 'noRoute' };
}

const isUnder = ({ prefix, exact }: Root, path: string): boolean =>
  path === prefix || (exact !== true && path.startsWith(`${prefix}/`));

/** `.` and `..` are resolved before anything looks at the path. */
export function cleanPath(path: string): string {
  const out: string[] = [];
  const parts = path.split('/').slice(1);
  for (const [i, part] of parts.entries()) {
    const isDots = part === '.' || part === '..';
    if (part === '..') out.pop();
    if (!isDots) out.push(part);
    else if (i === parts.length - 1) out.push('');
  }
  return `/${out.join('/')}`;
}

/** Where a path with empty segments leads; undefined for one that has none. */
export const withoutEmptySegments = (path: string): string | undefined =>
  path.includes('//') ? path.replaceAll(/\/{2,}/g, '/') : undefined;

/** The query as it was sent, `?` included. */
export const searchOf = ({ url }: Pick<IncomingMessage, 'url'>): string =>
  (url ?? '').slice(upTo(url ?? '', '?').length);

/** Decodes nothing twice: a broken escape is no match. A slash at the end says nothing, unless the pattern has one. */
export function match(pattern: string, path: string): Record<string, string> | undefined {
  const want = pattern.split('/');
  const got = (/(\/|\.\.\.\})$/.test(pattern) ? path : path.replace(/(.)\/$/, '$1')).split('/');
  const params: Record<string, string> = {};
  for (const [i, part] of want.entries()) {
    if (part.startsWith('{') && part.endsWith('...}')) {
      const rest = unescapePart(got.slice(i).join('/'));
      if (rest === undefined) return undefined;
      params[part.slice(1, -4)] = rest;
      return params;
    }
    const value = got[i];
    if (value === undefined) return undefined;
    if (part.startsWith('{') && part.endsWith('}')) {
      const decoded = unescapePart(value);
      if (decoded === undefined || decoded === '') return undefined;
      params[part.slice(1, -1)] = decoded;
    } else if (part !== value) return undefined;
  }
  return got.length === want.length ? params : undefined;
}

function unescapePart(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    // Not a valid escape: no such path.
    return undefined;
  }
}

/** Of our own endpoints: `?output=text` and `?output=json` win over the Accept header. */
export function wantsJson({ query, request }: Exchange): boolean {
  const asked = query.get('output');
  return asked === null ? (request.headers.accept ?? '').includes('application/json') : asked === 'json';
}
