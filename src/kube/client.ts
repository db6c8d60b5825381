// The REST client: JSON in and out, a request budget (QPS and burst), a deadline per call, repeats where the server asks
// for them with Retry-After. Several clients (main, events, heartbeat) share one transport and differ in their limits.
import type { KubeList } from '../core/meta.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import type { TokenBucket } from '../lib/token-bucket.ts';
import { isTooLargeVersion, replyError, retryAfterMs, transportError } from './api-error.ts';
import type { Body, Reply } from './exchange.ts';
import type { Lane } from './reachability.ts';
import type { Recovery } from './recovery.ts';
import type { Renewal } from './renewal.ts';
import { targetOf, type Resource, type Where } from './resources.ts';
import type { HttpRequest, Transport } from './transport.ts';
import { readWatch, type WatchEvent } from './watch.ts';

export type DeleteOptions = { readonly gracePeriodSeconds?: number; readonly preconditions?: { readonly uid: string } };

/** One exchange, or a watch that began or failed to. */
export type Attempt = {
  readonly method: string;
  /** `<error>` without an answer. */
  readonly code: string;
  readonly host: string;
  /** It was made before, and the server asked to come back. */
  readonly isRepeat: boolean;
  /** Not of a watch, which spends nothing of the budget and sends nothing. */
  readonly exchange?: {
    /** For its turn, before it. */
    readonly waitedMs: number;
    readonly sentBytes: number;
  };
};
/** A request with all its attempts and waits. A watch has no end that would say anything. */
export type FinishedRequest = {
  readonly method: string;
  readonly host: string;
  readonly ms: number;
  /** The last answer's, where there was one to read. */
  readonly receivedBytes?: number;
};
export interface RequestObserver {
  attempt(attempt: Attempt): void;
  request(request: FinishedRequest): void;
}

/** Told when an exchange begins; the answer is called when it is over. */
export type CallObserver = (call: string) => (ok: boolean) => void;

export type ClientDeps = {
  clock: Clock;
  transport: Transport;
  limiter: TokenBucket;
  observe?: RequestObserver;
  begin?: CallObserver;
  /** Told when a call had to wait for its turn. */
  waited?: (ms: number, verb: string, path: string) => void;
};
export type ClientOptions = {
  /** Deadline of one exchange, watches excepted. */
  timeoutMs?: number;
  /** Adds `timeout=` to every call, as the heartbeat client does. */
  sendTimeout?: string;
  lane?: Lane;
  /** Its watches may be refused for want of room; whoever uses it can do without. */
  optionalWatches?: boolean;
};

const TIMEOUT_MS = 60_000;
const WATCH_HEAD_TIMEOUT_MS = 30_000;
/** A whole list of a large cluster stays far below; an answer that does not end would take all memory. */
const MAX_BODY_BYTES = 128 * 1024 * 1024;
const MAX_ERROR_BYTES = 256 * 1024;
const MAX_REPEATS = 10;
const MAX_RETRY_AFTER_MS = 30_000;
const STRATEGIC_MERGE = 'application/strategic-merge-patch+json';

type Named = Where & { readonly name: string };
/** What is learned of the last answer on the way. */
type Answer = { receivedBytes?: number };

export class KubeClient {
  readonly #deps: ClientDeps;
  readonly #o: ClientOptions;

  constructor(deps: ClientDeps, options: ClientOptions = {}) {
    this.#deps = deps;
    this.#o = options;
  }

  /** Tells when the server answers again after it did not. */
  get recovery(): Recovery {
    return this.#deps.transport.recovery;
  }

  get renewal(): Renewal {
    return this.#deps.transport.renewal;
  }

  get<T>(resource: Resource<T>, where: Named, signal: AbortSignal): Promise<T> {
    return this.#json<T>({ method: 'GET', target: this.#target(resource, where) }, signal);
  }

  list<T>(resource: Resource<T>, where: Where, signal: AbortSignal): Promise<KubeList<T>> {
    return this.#json<KubeList<T>>({ method: 'GET', target: this.#target(resource, where) }, signal, 'LIST');
  }

  create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T> {
    return this.#json<T>({ method: 'POST', target: this.#target(resource, where), body: JSON.stringify(body) }, signal);
  }

  replace<T>(resource: Resource<T>, where: Named, body: object, signal: AbortSignal): Promise<T> {
    return this.#json<T>({ method: 'PUT', target: this.#target(resource, where), body: JSON.stringify(body) }, signal);
  }

  /** A strategic-merge patch, the only kind the kubelet sends. */
  patch<T>(resource: Resource<T>, where: Named, body: object, signal: AbortSignal): Promise<T> {
    const target = this.#target(resource, where);
    return this.#json<T>({ method: 'PATCH', target, body: JSON.stringify(body), contentType: STRATEGIC_MERGE }, signal);
  }

  async delete(resource: Resource<unknown>, where: Where, options: DeleteOptions, signal: AbortSignal): Promise<void> {
    const body = JSON.stringify({ kind: 'DeleteOptions', apiVersion: 'v1', ...options });
    await this.#json<unknown>({ method: 'DELETE', target: this.#target(resource, where), body }, signal);
  }

  /** Plain text of a non-resource path such as `/healthz`. */
  async text(path: string, signal: AbortSignal): Promise<string> {
    return (await this.#exchange({ method: 'GET', target: path }, 'GET', signal)).toString('utf8');
  }

  /**
   * One watch. Ends when the server ends it, throws when it breaks, is silent for `idleMs`, or `signal` aborts. The first
   * `next()` sends the request; `stood` is called when a success began to come. It spends nothing of the budget: whoever watches waits between tries already, and a crowd of
   * pods with objects of their own would hold up its own status updates.
   */
  async *watch<T>(
    resource: Resource<T>,
    where: Where,
    idleMs: number,
    signal: AbortSignal,
    stood: () => void = () => undefined,
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const { clock, transport } = this.#deps;
    const target = targetOf(resource, { ...where, query: { ...where.query, watch: true } });
    // The deadline covers the response's head, or a whole refusal, so the signal of the exchange itself is ours.
    const own = new AbortController();
    const up = (): void => own.abort(signal.reason);
    signal.addEventListener('abort', up, { once: true });
    const head = clock.after(WATCH_HEAD_TIMEOUT_MS, () =>
      own.abort(new KubeletError('deadline', `watch ${resource.plural}: no answer in ${WATCH_HEAD_TIMEOUT_MS}ms`)),
    );
    try {
      signal.throwIfAborted();
      const stream = this.#o.optionalWatches === true ? 'optional' : 'required';
      const reply = await this.#opened(transport.send({ method: 'GET', target, stream }, own.signal), signal);
      if (reply.status === 401) transport.refused();
      await requireSuccess('GET', target, reply, own.signal);
      head.cancel();
      stood();
      yield* readWatch<T>(clock, reply.body, resource.plural, idleMs, own.signal);
    } finally {
      head.cancel();
      signal.removeEventListener('abort', up);
      own.abort(new KubeletError('cancelled', 'the watch is over'));
    }
  }

  async #opened(sent: Promise<Reply>, signal: AbortSignal): Promise<Reply> {
    try {
      const reply = await sent;
      this.#tried('GET', reply.status);
      return reply;
    } catch (err) {
      if (!signal.aborted) this.#tried('GET', undefined);
      throw err;
    }
  }

  #target(resource: Resource<unknown>, where: Where): string {
    const timeout = this.#o.sendTimeout;
    return targetOf(resource, timeout === undefined ? where : { ...where, query: { ...where.query, timeout } });
  }

  async #json<T>(request: HttpRequest, signal: AbortSignal, verb: string = request.method): Promise<T> {
    const body = await this.#exchange(request, verb, signal);
    try {
      return JSON.parse(body.toString('utf8')) as T;
    } catch {
      // No cause: it quotes the answer, which may be a Secret.
      throw new KubeletError('unavailable', `${request.method} ${pathOf(request)}: the answer is not JSON`);
    }
  }

  async #exchange(request: HttpRequest, verb: string, signal: AbortSignal): Promise<Buffer> {
    const { clock, observe, transport } = this.#deps;
    const from = clock.monotonic();
    const answer: Answer = {};
    try {
      return await this.#attempts(request, verb, answer, signal);
    } finally {
      observe?.request({ method: request.method, host: transport.host, ms: clock.monotonic() - from, ...answer });
    }
  }

  async #attempts(request: HttpRequest, verb: string, answer: Answer, signal: AbortSignal): Promise<Buffer> {
    const { clock, limiter, transport } = this.#deps;
    const timeoutMs = this.#o.timeoutMs ?? TIMEOUT_MS;
    for (let attempt = 0; ; attempt++) {
      const waitedMs = await limiter.take(signal);
      if (waitedMs > 0) this.#deps.waited?.(waitedMs, verb, pathOf(request));
      try {
        return await withDeadline(clock, signal, timeoutMs, (s) =>
          this.#once(request, verb, { waitedMs, isRepeat: attempt > 0, answer }, s),
        );
      } catch (err) {
        if (signal.aborted) throw err;
        const unauthorized = isFault(err, 'denied') && err.detail['status'] === 401;
        if (unauthorized && attempt === 0 && transport.refused()) continue;
        // Whoever asks for a version has something better to do than to wait for it.
        const waitMs = isTooLargeVersion(err) ? undefined : retryAfterMs(err);
        if (waitMs === undefined || attempt >= MAX_REPEATS) throw err;
        await clock.sleep(Math.min(waitMs, MAX_RETRY_AFTER_MS), signal);
        signal.throwIfAborted();
      }
    }
  }

  async #once(
    request: HttpRequest,
    verb: string,
    { waitedMs, isRepeat, answer }: { readonly waitedMs: number; readonly isRepeat: boolean; readonly answer: Answer },
    signal: AbortSignal,
  ): Promise<Buffer> {
    const end = this.#deps.begin?.(`${verb} ${pathOf(request)}`);
    let code: number | undefined;
    delete answer.receivedBytes;
    try {
      const { lane } = this.#o;
      const reply = await this.#deps.transport.send(lane === undefined ? request : { ...request, lane }, signal);
      code = reply.status;
      await requireSuccess(request.method, request.target, reply, signal, answer);
      const body = await bodyOf(request, reply.body, MAX_BODY_BYTES, signal);
      answer.receivedBytes = body.length;
      return body;
    } finally {
      end?.(code !== undefined && code < 500);
      const sentBytes = Buffer.byteLength(request.body ?? '');
      this.#tried(request.method, code, { exchange: { waitedMs, sentBytes }, isRepeat });
    }
  }

  #tried(method: string, status: number | undefined, more: Partial<Pick<Attempt, 'exchange' | 'isRepeat'>> = {}): void {
    const { observe, transport } = this.#deps;
    const code = status === undefined ? '<error>' : String(status);
    observe?.attempt({ method, code, host: transport.host, isRepeat: false, ...more });
  }
}

const pathOf = (request: HttpRequest): string => request.target.split('?')[0] ?? '';

async function requireSuccess(
  method: HttpRequest['method'],
  target: string,
  reply: Reply,
  signal: AbortSignal,
  answer: Answer = {},
): Promise<void> {
  const { status, body } = reply;
  if (status >= 200 && status < 300) return;
  const said = await bodyOf({ method, target }, body, MAX_ERROR_BYTES, signal);
  if (said.length > 0) answer.receivedBytes = said.length;
  const text = said.toString('utf8');
  const after = Number(reply.header('retry-after'));
  const repeatable = (status === 429 || status >= 500) && Number.isFinite(after) && after >= 0;
  throw replyError(`${method} ${pathOf({ method, target })}`, status, text, repeatable ? after : undefined);
}

async function bodyOf(request: HttpRequest, body: Body, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
  const what = `${request.method} ${pathOf(request)}`;
  try {
    return await wholeOf(body, maxBytes, what);
  } catch (err) {
    throw transportError(what, err, signal);
  } finally {
    body.destroy();
  }
}

/** By calls: every pod has some requests, and an async iterator makes a promise for each chunk. */
function wholeOf(body: Body, maxBytes: number, what: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    body.read({
      onData: (chunk) => {
        size += chunk.length;
        if (size <= maxBytes) chunks.push(chunk);
        else reject(new KubeletError('invalid', `${what}: the answer is larger than ${maxBytes} bytes`));
      },
      onEnd: () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)),
      onError: reject,
    });
  });
}
