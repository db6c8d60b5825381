// Service account tokens for pods: requested from the API server, kept, and renewed well before they expire. While the
// server is away the last token is used for as long as it is valid.
import { parseTimeMs } from '../core/time.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';
import { KubeletError } from '../lib/errors.ts';
import { SERVICE_ACCOUNTS, type Resource, type TokenRequest, type Where } from './resources.ts';

export interface TokenClient {
  create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T>;
}

export type TokenDeps = { client: TokenClient; clock: Clock; log: Logger };
export type TokenAsk = {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly audiences: readonly string[];
  readonly expirationSeconds?: number;
  readonly pod?: { readonly name: string; readonly uid: string };
};
export type Token = { readonly token: string; readonly expirationTimestamp: string };

type Held = { readonly token: Token; readonly issuedMs: number; readonly expiresMs: number; readonly podUid: string };

const DEFAULT_SECONDS = 3600;
const MAX_AGE_MS = 24 * 3600 * 1000;
const JITTER_MS = 10_000;
const CLEANUP_MS = 60_000;

export class TokenManager implements Runnable {
  readonly name = 'tokens';
  readonly #deps: TokenDeps;
  readonly #held = new Map<string, Held>();
  readonly #asking = new Map<string, Promise<Token>>();

  constructor(deps: TokenDeps) {
    this.#deps = deps;
  }

  async get(ask: TokenAsk, signal: AbortSignal): Promise<Token> {
    const key = keyOf(ask);
    const held = this.#held.get(key);
    const { clock, log } = this.#deps;
    if (held !== undefined && !needsRefresh(held, clock.now(), clock.random())) return held.token;
    try {
      const joined = this.#asking.get(key);
      // Whoever asked may have gone away before the answer: then we ask ourselves.
      if (joined !== undefined) return await joined.catch(() => this.#ask(key, ask, signal));
      return await this.#ask(key, ask, signal);
    } catch (err) {
      if (held === undefined || clock.now() >= held.expiresMs) throw err;
      signal.throwIfAborted();
      log.warn('could not refresh a token, using the old one', {
        namespace: ask.namespace,
        serviceAccount: ask.serviceAccount,
        err,
      });
      return held.token;
    }
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

  #ask(key: string, ask: TokenAsk, signal: AbortSignal): Promise<Token> {
    const asking = this.#request(key, ask, signal).finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }

  async #request(key: string, ask: TokenAsk, signal: AbortSignal): Promise<Token> {
    const expirationSeconds = ask.expirationSeconds ?? DEFAULT_SECONDS;
    const body: Omit<TokenRequest, 'metadata'> = {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      spec: {
        audiences: ask.audiences.length === 0 ? null : ask.audiences,
        expirationSeconds,
        ...(ask.pod === undefined ? {} : { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', ...ask.pod } }),
      },
    };
    const where = { namespace: ask.namespace, name: ask.serviceAccount, subresource: 'token' };
    const { spec, status } = await this.#deps.client.create(SERVICE_ACCOUNTS, where, body, signal);
    if (status === undefined) throw new KubeletError('internal', 'the API server returned no token');
    const expiresMs = parseTimeMs(status.expirationTimestamp);
    const issuedMs = expiresMs - (spec.expirationSeconds ?? expirationSeconds) * 1000;
    const token = { token: status.token, expirationTimestamp: status.expirationTimestamp };
    this.#held.set(key, { token, issuedMs, expiresMs, podUid: ask.pod?.uid ?? '' });
    return token;
  }

  #dropExpired(): void {
    const now = this.#deps.clock.now();
    for (const [key, held] of this.#held) if (now >= held.expiresMs) this.#held.delete(key);
  }
}

/** Older than a day, or in the last fifth of its life; `random` in [0,1) spreads the nodes. */
export function needsRefresh(held: { issuedMs: number; expiresMs: number }, nowMs: number, random: number): boolean {
  const jitterMs = random * JITTER_MS;
  const lifeMs = held.expiresMs - held.issuedMs;
  return nowMs > held.issuedMs + MAX_AGE_MS - jitterMs || nowMs > held.expiresMs - lifeMs / 5 - jitterMs;
}

const keyOf = (ask: TokenAsk): string =>
  JSON.stringify([ask.namespace, ask.serviceAccount, ask.audiences, ask.expirationSeconds ?? null, ask.pod ?? null]);
