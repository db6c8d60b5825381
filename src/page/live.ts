// Live views as server-sent events. A topic is computed while somebody looks at it, once for all who do; when the last
// one leaves, it ends. What has not changed is not sent.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { childScope, type Scope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';

export type Message = { readonly event: string; readonly data: string };

/** One topic's messages, made for those who look at it now. */
export interface Topic {
  /** For one who has just come: everything. */
  first(signal: AbortSignal): Promise<Message | undefined>;
  /** What is new since the last time, for all. */
  next(signal: AbortSignal): Promise<Message | undefined>;
  /** The longest wait between two looks. */
  readonly everyMs: number;
  /** Calls back when it is worth looking. */
  onChange?(wake: () => void): () => void;
  close?(): void;
}

type Running = {
  readonly topic: Topic;
  readonly visitors: Set<ServerResponse>;
  readonly scope: Scope;
  nap: Scope | undefined;
};

const MAX_VISITORS = 64;
const MAX_QUEUED_BYTES = 4 * 1024 * 1024;
/** Changes that come in a crowd are sent together. */
const GATHER_MS = 500;
const PING_MS = 20_000;

export class LiveViews {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #topics = new Map<string, Running>();
  #visitors = 0;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  get visitors(): number {
    return this.#visitors;
  }

  /** Serves one visitor until they leave. `open` makes the topic if nobody looks at it yet. */
  async visit(
    key: string,
    open: () => Topic,
    response: ServerResponse,
    signal: AbortSignal,
    stop: AbortSignal,
  ): Promise<void> {
    if (this.#visitors >= MAX_VISITORS) {
      response.statusCode = 503;
      response.end('too many pages are open\n');
      return;
    }
    this.#visitors++;
    beginEvents(response);
    const running = this.#topics.get(key) ?? this.#begin(key, open(), stop);
    try {
      const message = await running.topic.first(signal);
      if (message !== undefined) send(response, message);
      running.visitors.add(response);
      running.nap?.abort();
      if (!signal.aborted) await once(signal, 'abort');
    } finally {
      this.#visitors--;
      running.visitors.delete(response);
      if (running.visitors.size === 0) this.#end(key, running);
    }
  }

  #begin(key: string, topic: Topic, stop: AbortSignal): Running {
    const running: Running = { topic, visitors: new Set(), scope: childScope(stop), nap: undefined };
    this.#topics.set(key, running);
    void this.#run(running);
    return running;
  }

  #end(key: string, running: Running): void {
    if (this.#topics.get(key) === running) this.#topics.delete(key);
    running.scope.abort();
    running.scope.release();
  }

  async #run(running: Running): Promise<void> {
    const { topic, scope } = running;
    const { signal } = scope;
    const off = topic.onChange?.(() => running.nap?.abort());
    let pingedAt = this.#clock.monotonic();
    while (!signal.aborted) {
      await this.#clock.sleep(GATHER_MS, signal);
      if (running.visitors.size > 0) {
        const message = await this.#look(topic, signal);
        const isPing = message === undefined && this.#clock.monotonic() - pingedAt > PING_MS;
        if (message !== undefined || isPing) pingedAt = this.#clock.monotonic();
        for (const visitor of running.visitors) deliver(visitor, message, isPing);
      }
      if (signal.aborted) break;
      running.nap = childScope(signal);
      await this.#clock.sleep(Math.min(topic.everyMs, PING_MS), running.nap.signal);
      running.nap.release();
      running.nap = undefined;
    }
    off?.();
    topic.close?.();
  }

  async #look(topic: Topic, signal: AbortSignal): Promise<Message | undefined> {
    try {
      return await topic.next(signal);
    } catch (err) {
      if (!signal.aborted) this.#log.debug('a live view could not be made', { err: messageOf(err) });
      return undefined;
    }
  }
}

export function beginEvents(response: ServerResponse): void {
  response.statusCode = 200;
  response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
  response.setHeader('X-Accel-Buffering', 'no');
  response.write('retry: 2000\n\n');
}

export const send = (response: ServerResponse, { event, data }: Message): boolean =>
  response.write(`event: ${event}\ndata: ${data}\n\n`);

/** One who does not read is let go: the page comes again and gets everything. */
function deliver(visitor: ServerResponse, message: Message | undefined, isPing: boolean): void {
  if (visitor.writableLength > MAX_QUEUED_BYTES) visitor.destroy();
  else if (message !== undefined) send(visitor, message);
  else if (isPing) visitor.write(': still here\n\n');
}
