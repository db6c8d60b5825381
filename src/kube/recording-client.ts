// Stands in for KubeClient in tests: answers from a small table of objects and records every call.
import type { KubeList } from '../core/meta.ts';
import { KubeletError } from '../lib/errors.ts';
import { targetOf, type Resource, type Where } from './resources.ts';
import type { WatchEvent } from './watch.ts';

export type Call = { readonly verb: string; readonly target: string; readonly body?: unknown };
/** Returns what the server answers, or throws. `undefined` means 404. */
export type Answer = (call: Call) => unknown;

export class RecordingClient {
  readonly calls: Call[] = [];
  answer: Answer;

  constructor(answer: Answer) {
    this.answer = answer;
  }

  /** `VERB target` of every call so far. */
  get log(): readonly string[] {
    return this.calls.map((c) => `${c.verb} ${c.target}`);
  }

  /** The body of one call, as the test knows it to be. */
  body<T>(index: number): T {
    return this.calls.at(index)?.body as T;
  }

  get<T>(resource: Resource<T>, where: Where, _signal: AbortSignal): Promise<T> {
    return this.#call('GET', resource, where) as Promise<T>;
  }

  list<T>(resource: Resource<T>, where: Where, _signal: AbortSignal): Promise<KubeList<T>> {
    return this.#call('LIST', resource, where) as Promise<KubeList<T>>;
  }

  create<T>(resource: Resource<T>, where: Where, body: object, _signal: AbortSignal): Promise<T> {
    return this.#call('POST', resource, where, body) as Promise<T>;
  }

  replace<T>(resource: Resource<T>, where: Where, body: object, _signal: AbortSignal): Promise<T> {
    return this.#call('PUT', resource, where, body) as Promise<T>;
  }

  patch<T>(resource: Resource<T>, where: Where, body: object, _signal: AbortSignal): Promise<T> {
    return this.#call('PATCH', resource, where, body) as Promise<T>;
  }

  async delete(resource: Resource<unknown>, where: Where, options: object, _signal: AbortSignal): Promise<void> {
    await this.#call('DELETE', resource, where, options);
  }

  /** Yields what `answer` returns for `WATCH`, then stays open. */
  async *watch<T>(
    resource: Resource<T>,
    where: Where,
    _idleMs: number,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    yield* (await this.#call('WATCH', resource, where)) as WatchEvent<T>[];
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  async #call(verb: string, resource: Resource<unknown>, where: Where, body?: unknown): Promise<unknown> {
    const call = { verb, target: targetOf(resource, where), ...(body === undefined ? {} : { body }) };
    this.calls.push(call);
    await Promise.resolve();
    const answer = this.answer(call);
    if (answer === undefined) throw notFound(call.target);
    return answer;
  }
}

export const notFound = (what: string): KubeletError =>
  new KubeletError('notFound', `${what} not found`, { detail: { status: 404 } });
export const unreachable = (): KubeletError => new KubeletError('unavailable', 'connection refused');
