// Asks the API server who a bearer token belongs to, and whether a user may do something with this node.
import { createHash } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import { SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, type Resource, type UserInfo, type Where } from '../kube/resources.ts';
import { ReviewCache } from './review-cache.ts';

export interface ReviewClient {
  create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T>;
}
export type ReviewDeps = { client: ReviewClient; clock: Clock };
/** Told of every question that went to the API server. */
export type ReviewObserver = (code: string, seconds: number) => void;

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
/** Strangers can make up tokens faster than the API server may be asked about them: the rest is told to come back. */
const MAX_TOKENS_ASKED = 100;

type TokenAnswer = { readonly user?: UserInfo };

export class TokenReviewer {
  readonly #deps: ReviewDeps;
  readonly #cache: ReviewCache<TokenAnswer>;

  constructor(deps: ReviewDeps, options: { cacheTtlMs: number }) {
    this.#deps = deps;
    this.#cache = new ReviewCache(deps.clock, () => options.cacheTtlMs);
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
    const { status } = await this.#deps.client.create(TOKEN_REVIEWS, {}, body, signal);
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
  readonly #deps: ReviewDeps & { readonly observe?: ReviewObserver };
  readonly #cache: ReviewCache<AccessAnswer>;

  constructor(
    deps: ReviewDeps & { readonly observe?: ReviewObserver },
    options: { allowedTtlMs: number; deniedTtlMs: number },
  ) {
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
    const { client, clock, observe } = this.#deps;
    const start = clock.monotonic();
    const done = (code: string): void => observe?.(code, (clock.monotonic() - start) / 1000);
    try {
      const { status } = await client.create(SUBJECT_ACCESS_REVIEWS, {}, body, signal);
      done(CREATED);
      return { allowed: status?.allowed === true && status.denied !== true, reason: status?.reason ?? '' };
    } catch (err) {
      done('<error>');
      throw err;
    }
  }
}
