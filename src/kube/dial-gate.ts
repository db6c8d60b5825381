// When a new connection may be tried after one failed. Whoever asks before that is told the last failure at once: however
// many watches wait for the server, it sees one attempt at a time. Where nobody listens at all, trying costs the server
// nothing and is done often; a server that is there and does not answer is left alone for longer and longer.
import { Backoff } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import { isAbsent } from './api-error.ts';

export type GateOptions = {
  /** Longest pause between attempts at a server that does not answer. */
  readonly maxSilentMs: number;
};

/** A pod created the moment the server is back must run within three seconds. */
export const MAX_ABSENT_MS = 1000;

export class DialGate {
  readonly #clock: Clock;
  readonly #absent = new Backoff({ baseMs: 50, maxMs: MAX_ABSENT_MS });
  readonly #silent: Backoff;
  #opensAt = -Infinity;
  #failure: KubeletError | undefined;

  constructor(clock: Clock, options: GateOptions) {
    this.#clock = clock;
    this.#silent = new Backoff({ baseMs: 800, maxMs: options.maxSilentMs });
  }

  /** Throws the last failure, with `retryInMs`, while it is too early. */
  check(): void {
    const left = this.#opensAt - this.#clock.monotonic();
    if (left > 0 && this.#failure !== undefined) throw withRetry(this.#failure, left);
  }

  /** The error to throw: `err` with the time after which the next attempt makes sense. */
  failed(err: unknown): unknown {
    if (!isFault(err)) return err;
    const now = this.#clock.monotonic();
    const ms = (isAbsent(err) ? this.#absent : this.#silent).failed(now) * (0.5 + this.#clock.random() / 2);
    this.#opensAt = now + ms;
    this.#failure = err;
    return withRetry(err, ms);
  }

  /** A connection stands, or the server has answered elsewhere. */
  open(): void {
    this.#opensAt = -Infinity;
    this.#failure = undefined;
    this.#absent.succeeded();
    this.#silent.succeeded();
  }
}

const withRetry = (err: KubeletError, retryInMs: number): KubeletError =>
  new KubeletError(err.kind, err.message, { detail: { ...err.detail, retryInMs } });

/** When another attempt to connect makes sense, if the failure was one to connect. */
export const retryInMs = (err: unknown): number | undefined => {
  const ms = isFault(err) ? err.detail['retryInMs'] : undefined;
  return typeof ms === 'number' ? ms : undefined;
};
