// Who is it, and may they? Asked for everything below a registered path, before any route is looked at.
import type { IncomingMessage } from 'node:http';
import { isFault } from '../lib/errors.ts';
import { ANONYMOUS, type UserInfo } from './user.ts';

export interface Authenticator {
  /** The user, undefined when these credentials are not for this authenticator; rejects when they are bad. */
  (request: IncomingMessage, signal: AbortSignal): Promise<UserInfo | undefined>;
}

export type AccessQuestion = {
  readonly user: UserInfo;
  readonly verb: string;
  readonly nodeName: string;
  readonly subresource: string;
};

export interface Authorizer {
  authorize(question: AccessQuestion, signal: AbortSignal): Promise<{ readonly allowed: boolean }>;
}

export type GuardDeps = {
  readonly authenticators: readonly Authenticator[];
  readonly authorizer: Authorizer;
};
export type GuardOptions = {
  readonly nodeName: string;
  readonly anonymous: boolean;
  /** exec, attach, port-forward and run need `create`, whatever the method. */
  readonly strictStreams: boolean;
};

export type Decision =
  | { readonly ok: true; readonly user: UserInfo }
  | { readonly ok: false; readonly status: 401 | 403 | 429 | 500; readonly body: string };

const VERBS: Readonly<Record<string, string>> = {
  POST: 'create',
  GET: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};
const STREAMS = /^\/(exec|attach|portForward|run)(\/|$)/;

const SUBRESOURCES: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^\/(pods|runningpods)(\/|$)/, ['pods', 'proxy']],
  // Our own: what is wrong with the manifests the pods come from.
  [/^\/problems$/, ['pods', 'proxy']],
  [/^\/healthz(\/|$)/, ['healthz', 'proxy']],
  [/^\/configz$/, ['configz', 'proxy']],
  [/^\/stats(\/|$)/, ['stats']],
  [/^\/metrics(\/|$)/, ['metrics']],
  [/^\/logs(\/|$)/, ['log']],
  [/^\/checkpoint(\/|$)/, ['checkpoint']],
  [/^\/statusz$/, ['statusz']],
  [/^\/flagz$/, ['configz']],
];

export const subresourcesOf = (path: string): readonly string[] =>
  SUBRESOURCES.find(([pattern]) => pattern.test(path))?.[1] ?? ['proxy'];

const authenticated = (user: UserInfo): UserInfo => {
  const groups = user.groups ?? [];
  return groups.includes('system:authenticated') ? user : { ...user, groups: [...groups, 'system:authenticated'] };
};

export class Guard {
  readonly #deps: GuardDeps;
  readonly #o: GuardOptions;

  constructor(deps: GuardDeps, options: GuardOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  async decide(request: IncomingMessage, path: string, signal: AbortSignal): Promise<Decision> {
    const user = await this.#identify(request, signal);
    if (user === 'busy') return { ok: false, status: 429, body: 'Too many requests, please try again later.\n' };
    if (user === undefined) return { ok: false, status: 401, body: 'Unauthorized' };
    return this.#authorize(user, request.method ?? '', path, signal);
  }

  /** Bad credentials are not made good by letting anonymous users in. */
  async #identify(request: IncomingMessage, signal: AbortSignal): Promise<UserInfo | 'busy' | undefined> {
    let bad = false;
    let busy = false;
    for (const authenticate of this.#deps.authenticators) {
      try {
        const user = await authenticate(request, signal);
        if (user !== undefined) return authenticated(user);
      } catch (err) {
        // A refused or unverifiable credential: another may be good, and the caller is told no more than that.
        bad = true;
        busy ||= isFault(err, 'exhausted');
      }
    }
    if (busy) return 'busy';
    return this.#o.anonymous && !bad ? ANONYMOUS : undefined;
  }

  async #authorize(user: UserInfo, method: string, path: string, signal: AbortSignal): Promise<Decision> {
    const verb = this.#o.strictStreams && STREAMS.test(path) ? 'create' : (VERBS[method] ?? '');
    const subresources = subresourcesOf(path);
    const name = user.username ?? '';
    for (const subresource of subresources) {
      try {
        const { allowed } = await this.#deps.authorizer.authorize(
          { user, verb, nodeName: this.#o.nodeName, subresource },
          signal,
        );
        if (allowed) return { ok: true, user };
      } catch {
        // The API server could not be asked; the answer says so without saying why.
        const body = `Authorization error (user=${name}, verb=${verb}, resource=nodes, subresource=${subresource})`;
        return { ok: false, status: 500, body };
      }
    }
    const body = `Forbidden (user=${name}, verb=${verb}, resource=nodes, subresource(s)=[${subresources.join(' ')}])\n`;
    return { ok: false, status: 403, body };
  }
}
