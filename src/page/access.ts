// Who may look at the page on its own port. A browser obeys every site it is shown, so a request must come from the page
// itself: addressed to a name of this node (DNS rebinding), not sent by another site, and with the token or its cookie.
import type { IncomingMessage } from 'node:http';
import type { Decision, Guard } from '../server/guard.ts';
import type { UserInfo } from '../server/user.ts';
import type { PageToken } from './token.ts';
import { upTo } from '../lib/text.ts';

export type PageAccessDeps = {
  readonly token: PageToken;
  /** Decides about client certificates as on the main port, where the page has TLS. */
  readonly certified?: Pick<Guard, 'decide'>;
};
export type PageAccessOptions = {
  /** Names and addresses under which the page may be asked for. */
  readonly hosts: ReadonlySet<string>;
  /** Where the token is, for those who come without. */
  readonly tokenFile: string;
};

export const COOKIE = 'kubelet-node-page';
/** Where a link with the token in it may point. */
const ENTRANCES = new Set(['/', '/page/']);

const refused = (status: 401 | 403, body: string): Decision => ({ ok: false, status, body: `${body}\n` });

export class PageAccess {
  readonly #deps: PageAccessDeps;
  readonly #o: PageAccessOptions;

  constructor(deps: PageAccessDeps, options: PageAccessOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  async decide(request: IncomingMessage, path: string, signal: AbortSignal): Promise<Decision> {
    if (!this.#o.hosts.has(hostOf(request.headers.host)))
      return refused(403, 'Forbidden: this node page is not known by that host name');
    if (!isOwnSite(request, path)) return refused(403, 'Forbidden: the request comes from another site');
    // The bare address leads to the page, which the cookie is for. There is nothing to see on the way.
    if (path === '/' && tokenInLink(request.url) === undefined) return { ok: true, user: VISITOR };
    if (this.#hasToken(request, path)) return { ok: true, user: VISITOR };
    const { certified } = this.#deps;
    if (certified !== undefined && isCertified(request)) return certified.decide(request, path, signal);
    return refused(401, `Unauthorized: add ?token= and the token in ${this.#o.tokenFile} to the address`);
  }

  #hasToken(request: IncomingMessage, path: string): boolean {
    const { token } = this.#deps;
    const [, bearer] = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '') ?? [];
    if (bearer !== undefined) return token.isToken(bearer);
    const inLink = ENTRANCES.has(path) ? tokenInLink(request.url) : undefined;
    if (inLink !== undefined) return token.isToken(inLink);
    const cookie = cookieOf(request.headers.cookie);
    return cookie !== undefined && token.isCookie(cookie);
  }
}

const isCertified = ({ socket }: IncomingMessage): boolean => (socket as { authorized?: unknown }).authorized === true;

const VISITOR: UserInfo = { username: 'system:node-page' };

/** `example.org:4194` → `example.org`, `[::1]:4194` → `::1` */
export function hostOf(header: string | undefined): string {
  const [, bracketed, plain] = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/.exec(header ?? '') ?? [];
  return (bracketed ?? plain ?? '').toLowerCase();
}

/**
 * Browsers say where a request comes from. One that another site makes is refused, whatever it carries; the only thing
 * others may do is link here. Programs that are no browsers send neither header.
 */
export function isOwnSite({ headers }: IncomingMessage, path: string): boolean {
  const site = headers['sec-fetch-site'];
  const isLink = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return isLink && ENTRANCES.has(path);
  const { origin } = headers;
  if (origin === undefined || site === 'same-origin') return true;
  return origin.replace(/^[a-z]+:\/\//, '') === headers.host;
}

export const tokenInLink = (url: string | undefined): string | undefined =>
  new URLSearchParams((url ?? '').slice(upTo(url ?? '', '?').length)).get('token') ?? undefined;

const cookieOf = (header: string | undefined): string | undefined =>
  (header ?? '')
    .split(/;\s*/)
    .find((part) => part.startsWith(`${COOKIE}=`))
    ?.slice(COOKIE.length + 1);
