// Asks the API server who a bearer token belongs to, and whether a user may do something with this node.
import { createHash } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import {
  SUBJECT_ACCESS_REVIEWS,
  TOKEN_REVIEWS,
  type Resource,
  type SubjectAccessReview,
  type UserInfo,
  type Where,
} from '../kube/resources.ts';
import { ReviewCache, type CacheObserver } from './review-cache.ts';

export interface ReviewClient {
  create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T>;
}
export type ReviewDeps = { client: ReviewClient; clock: Clock; observe?: ReviewObserver };
/** Told of every question that went to the API server: who somebody is, or what they may do. */
export type ReviewObserver = (kind: 'authn' | 'authz', code: string, seconds: number) => void;

const RETRY = { firstMs: 500, factor: 1.5, jitter: 0.2, tries: 5 };

/** Repeats a question that got no answer; one that was refused is answered. */
async function insist<T>({ clock }: ReviewDeps, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  let waitMs = RETRY.firstMs;
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (err) {
      const again = isFault(err, 'unavailable', 'deadline', 'exhausted', 'internal');
      if (!again || attempt >= RETRY.tries || signal.aborted) throw err;
    }
    await clock.sleep(waitMs * (1 + RETRY.jitter * clock.random()), signal);
    signal.throwIfAborted();
    waitMs *= RETRY.factor;
  }
}

const CREATED = '201';

/** One question, told of with the code of its answer, `<error>` where there was none. */
async function measured<T>({ clock, observe }: ReviewDeps, kind: 'authn' | 'authz', ask: () => Promise<T>): Promise<T> {
  const start = clock.monotonic();
  const done = (code: string): void => observe?.(kind, code, (clock.monotonic() - start) / 1000);
  try {
    const answer = await ask();
    done(CREATED);
    return answer;
  } catch (err) {
    const status = isFault(err) ? err.detail['status'] : undefined;
    done(typeof status === 'number' ? String(status) : '<error>');
    throw err;
  }
}

/** Strangers can make up tokens faster than the API server may be asked about them: the rest is told to come back. */
const MAX_TOKENS_ASKED = 100;

type TokenAnswer = { readonly user?: UserInfo };

export class TokenReviewer {
  readonly #deps: ReviewDeps;
  readonly #cache: ReviewCache<TokenAnswer>;

  constructor(deps: ReviewDeps & { cached?: CacheObserver }, options: { cacheTtlMs: number }) {
    this.#deps = deps;
    this.#cache = new ReviewCache(deps.clock, () => options.cacheTtlMs, deps.cached);
  }

  /** The token's user; undefined when the API server does not know it. Fails when it cannot be asked, or not now. */
  async authenticate(token: string, signal: AbortSignal): Promise<UserInfo | undefined> {
    const key = createHash('sha256').update(token).digest('base64');
    if (this.#cache.asking >= MAX_TOKENS_ASKED && !this.#cache.has(key))
      throw new KubeletError('exhausted', 'too many tokens are being reviewed');
    const answer = await this.#cache.get(key, () => insist(this.#deps, signal, () => this.#ask(token, signal)));
    return answer.user;
  }

  async #ask(token: string, signal: AbortSignal): Promise<TokenAnswer> {
    const body = { kind: 'TokenReview', apiVersion: 'authentication.k8s.io/v1', spec: { token } };
    const { client } = this.#deps;
    const { status } = await measured(this.#deps, 'authn', () => client.create(TOKEN_REVIEWS, {}, body, signal));
    if (status?.authenticated === true) return { user: status.user ?? {} };
    if (status?.error !== undefined && status.error !== '') throw new KubeletError('denied', status.error);
    return {};
  }
}

export type AccessQuestion = {
  readonly user: UserInfo;
  readonly verb: string;
  readonly nodeName: string;
  readonly subresource: string;
};
export type AccessAnswer = { readonly allowed: boolean; readonly reason: string };

export class AccessReviewer {
  readonly #deps: ReviewDeps;
  readonly #cache: ReviewCache<AccessAnswer>;

  constructor(deps: ReviewDeps, options: { allowedTtlMs: number; deniedTtlMs: number }) {
    this.#deps = deps;
    const ttl = ({ allowed }: AccessAnswer): number => (allowed ? options.allowedTtlMs : options.deniedTtlMs);
    this.#cache = new ReviewCache(deps.clock, ttl);
  }

  /** Fails when the API server cannot be asked. */
  async authorize(question: AccessQuestion, signal: AbortSignal): Promise<AccessAnswer> {
    const { user, verb, nodeName, subresource } = question;
    const spec = {
      user: user.username ?? '',
      ...(user.uid === undefined || user.uid === '' ? {} : { uid: user.uid }),
      ...(user.groups === undefined ? {} : { groups: user.groups }),
      ...(user.extra === undefined ? {} : { extra: user.extra }),
      resourceAttributes: { verb, version: 'v1', resource: 'nodes', subresource, name: nodeName },
    };
    const body = { kind: 'SubjectAccessReview', apiVersion: 'authorization.k8s.io/v1', spec };
    return await this.#cache.get(JSON.stringify(spec), () => insist(this.#deps, signal, () => this.#ask(body, signal)));
  }

  async #ask(body: object, signal: AbortSignal): Promise<AccessAnswer> {
    const { client } = this.#deps;
    const ask = (): Promise<SubjectAccessReview> => client.create(SUBJECT_ACCESS_REVIEWS, {}, body, signal);
    const { status } = await measured(this.#deps, 'authz', ask);
    return { allowed: status?.allowed === true && status.denied !== true, reason: status?.reason ?? '' };
  }
}
