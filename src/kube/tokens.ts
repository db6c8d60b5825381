// Service account tokens for pods: requested from the API server, kept, and renewed well before they expire. While the
// server is away the last token is used for as long as it is valid.
import { parseTimeMs } from '../core/time.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';
import { isFault, KubeletError, messageOf } from '../lib/errors.ts';
import { isPodNotYetKnown, isUnreachable, OFFLINE_AFTER_MS } from './api-error.ts';
import { SERVICE_ACCOUNTS, type Resource, type TokenRequest, type Where } from './resources.ts';

export interface TokenClient {
  create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T>;
}

export type TokenDeps = { client: TokenClient; clock: Clock; log: Logger; issued?: IssuedTokens };
export type TokenAsk = {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** For no other account of that name: it may have been made anew since somebody looked. */
  readonly serviceAccountUid?: string;
  readonly audiences: readonly string[];
  readonly expirationSeconds?: number;
  readonly pod?: { readonly name: string; readonly uid: string };
  /** The wall time at which the pod was seen first. */
  readonly seenMs?: number;
};
export type Token = { readonly token: string; readonly expirationTimestamp: string };
/** `refreshAtMs`: the wall time at which asking again may bring a newer one. */
export type FreshToken = Token & { readonly refreshAtMs: number };
export type IssuedToken = Token & { readonly podUid: string };

/** Tokens that were issued before, be it before a reboot. */
export interface IssuedTokens {
  get(key: string): IssuedToken | undefined;
  set(key: string, token: IssuedToken): void;
}

type Held = { readonly token: FreshToken; readonly expiresMs: number; readonly podUid: string };

const DEFAULT_SECONDS = 3600;
const MAX_AGE_MS = 24 * 3600 * 1000;
const JITTER_MS = 10_000;
/** After a refresh that failed. */
const RETRY_MS = 30_000;
const CLEANUP_MS = 60_000;
/** The API server's own caches may be behind the watch that showed the pod, for so long. */
const NEW_POD_MS = 3000;
const FIRST_PAUSE_MS = 50;

export class TokenManager implements Runnable {
  readonly name = 'tokens';
  readonly #deps: TokenDeps;
  readonly #held = new Map<string, Held>();
  readonly #asking = new Map<string, Promise<FreshToken>>();

  constructor(deps: TokenDeps) {
    this.#deps = deps;
  }

  async get(ask: TokenAsk, signal: AbortSignal): Promise<FreshToken> {
    const key = keyOf(ask);
    const held = this.#held.get(key);
    const now = this.#deps.clock.now();
    if (held !== undefined && now < held.token.refreshAtMs) return held.token;
    try {
      const joined = this.#asking.get(key);
      // Whoever asked may have gone away before the answer: then we ask ourselves.
      if (joined !== undefined) return await joined.catch(() => this.#ask(key, ask, signal));
      return await this.#ask(key, ask, signal);
    } catch (err) {
      signal.throwIfAborted();
      const token = held?.token ?? this.#issuedBefore(key, err);
      if (token === undefined) throw notFetched(err);
      return this.#still(token, ask, err);
    }
  }

  /** While the API server cannot be reached; what it refuses now, it means. */
  #issuedBefore(key: string, err: unknown): Token | undefined {
    return isUnreachable(err) ? this.#deps.issued?.get(key) : undefined;
  }

  /** The old token for as long as it is valid. */
  #still({ token, expirationTimestamp }: Token, ask: TokenAsk, err: unknown): FreshToken {
    const { clock, log } = this.#deps;
    const { namespace, serviceAccount } = ask;
    if (clock.now() >= parseTimeMs(expirationTimestamp)) {
      const text = `the last token of service account "${serviceAccount}" expired at ${expirationTimestamp}, and there is no new one: ${messageOf(err)}`;
      throw new KubeletError(isFault(err) ? err.kind : 'internal', text, { cause: err });
    }
    log.warn('could not refresh a token, using the old one', { namespace, serviceAccount, err });
    return { token, expirationTimestamp, refreshAtMs: clock.now() + RETRY_MS };
  }

  /** The pod is gone: its tokens are of no use any more. */
  forgetPod(uid: string): void {
    for (const [key, held] of this.#held) if (held.podUid === uid) this.#held.delete(key);
  }

  run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const options = { name: this.name, everyMs: CLEANUP_MS, delayFirst: true };
    return runEvery(clock, log, options, () => this.#dropExpired(), signal);
  }

  #ask(key: string, ask: TokenAsk, signal: AbortSignal): Promise<FreshToken> {
    const request = (stop: AbortSignal): Promise<FreshToken> => this.#request(key, ask, stop);
    const canDoWithout = this.#deps.issued?.get(key) !== undefined && !this.#held.has(key);
    const asked = canDoWithout ? withDeadline(this.#deps.clock, signal, OFFLINE_AFTER_MS, request) : request(signal);
    const asking = asked.finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }

  /** A pod that was seen a moment ago may not be known everywhere: asked again soon, before anybody is told. */
  async #request(key: string, ask: TokenAsk, signal: AbortSignal): Promise<FreshToken> {
    const { clock } = this.#deps;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
      try {
        return await this.#requestOnce(key, ask, signal);
      } catch (err) {
        const ageMs = clock.now() - (ask.seenMs ?? -Infinity);
        if (!isPodNotYetKnown(err) || ageMs < 0 || ageMs + pauseMs > NEW_POD_MS) throw err;
      }
      await clock.sleep(pauseMs, signal);
      signal.throwIfAborted();
    }
  }

  async #requestOnce(key: string, ask: TokenAsk, signal: AbortSignal): Promise<FreshToken> {
    const expirationSeconds = ask.expirationSeconds ?? DEFAULT_SECONDS;
    const uid = ask.serviceAccountUid ?? '';
    const body: Omit<TokenRequest, 'metadata'> & { readonly metadata?: { readonly uid: string } } = {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      ...(uid === '' ? {} : { metadata: { uid } }),
      spec: {
        audiences: ask.audiences.length === 0 ? null : ask.audiences,
        expirationSeconds,
        ...(ask.pod === undefined ? {} : { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', ...ask.pod } }),
      },
    };
    const where = { namespace: ask.namespace, name: ask.serviceAccount, subresource: 'token' };
    const { spec, status } = await this.#deps.client.create(SERVICE_ACCOUNTS, where, body, signal);
    if (status === undefined) throw new KubeletError('internal', 'the API server returned no token');
    const { token, expirationTimestamp } = status;
    const expiresMs = parseTimeMs(expirationTimestamp);
    const lifeMs = (spec.expirationSeconds ?? expirationSeconds) * 1000;
    const refreshAtMs = refreshAt({ issuedMs: expiresMs - lifeMs, expiresMs }, this.#deps.clock.random());
    const podUid = ask.pod?.uid ?? '';
    const fresh = { token, expirationTimestamp, refreshAtMs };
    this.#held.set(key, { token: fresh, expiresMs, podUid });
    this.#deps.issued?.set(key, { token, expirationTimestamp, podUid });
    return fresh;
  }

  #dropExpired(): void {
    const now = this.#deps.clock.now();
    for (const [key, held] of this.#held) if (now >= held.expiresMs) this.#held.delete(key);
  }
}

/** With a fifth of its life left, or after a day; a moment before that, so that nodes do not all ask at once. */
export function refreshAt({ issuedMs, expiresMs }: { issuedMs: number; expiresMs: number }, random: number): number {
  const lifeMs = expiresMs - issuedMs;
  // Short lives are for tests of others: no API server issues tokens for less than ten minutes.
  const jitterMs = random * Math.min(JITTER_MS, lifeMs / 10);
  return Math.min(issuedMs + MAX_AGE_MS, expiresMs - lifeMs / 5) - jitterMs;
}

const notFetched = (err: unknown): KubeletError =>
  new KubeletError(isFault(err) ? err.kind : 'internal', `failed to fetch token: ${messageOf(err)}`, {
    cause: err,
    ...(isFault(err) ? { detail: err.detail } : {}),
  });

const keyOf = (ask: TokenAsk): string =>
  JSON.stringify([
    ask.namespace,
    ask.serviceAccount,
    ask.audiences,
    ask.expirationSeconds ?? null,
    ask.pod ?? null,
    // Keys are on disk as well, where an account's id is no part of them.
    ...(ask.serviceAccountUid === undefined ? [] : [ask.serviceAccountUid]),
  ]);
