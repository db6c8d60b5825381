// One HTTP exchange, whatever the protocol: what is sent, and the head of what comes back.
import { KubeletError, messageOf } from '../lib/errors.ts';

export type Outgoing = {
  readonly method: string;
  readonly path: string;
  /** Host and port, as a URL has them. */
  readonly authority: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** A watch. `optional` ones are refused when there is no room for them, with `noRoom`. */
  readonly stream?: 'required' | 'optional';
};

/** Where the body of an answer goes. The last call is `onEnd` or `onError`. */
export interface BodySink {
  onData(chunk: Buffer): void;
  onEnd(): void;
  onError(err: Error): void;
}

/** Whoever has one reads it to its end or destroys it. */
export interface Body {
  /** Once; what has come already is told at once. */
  read(sink: BodySink): void;
  pause(): void;
  resume(): void;
  /** The other side is told; the sink is, where there is a reason. */
  destroy(reason?: Error): void;
}

export type Reply = {
  readonly status: number;
  /** By its name in lower case. */
  header(name: string): string | undefined;
  readonly body: Body;
};

/** Connections of one kind to one server with one identity. */
export interface Connections {
  /** Settles on an answer, an upgrade, an error, the end of the connection or the signal, whichever comes first. */
  exchange(out: Outgoing, signal: AbortSignal): Promise<Reply>;
  /** No new exchanges: streams end now, requests under way may finish. */
  retire(reason: Error): void;
  /** Everything ends now. */
  destroy(reason: Error): void;
  /** Looks whether the other side is still there. */
  ask(): void;
  /** How many connections stand. */
  readonly size: number;
}

/**
 * `unprocessed`: the server has not acted on the request, it may be sent again. `reused`: the connection had served before
 * and broke, a request that may be done twice may be sent again.
 */
export type Fate = 'unprocessed' | 'reused' | 'unknown';

/** A request that got no answer. */
export class LostExchange extends Error {
  readonly fate: Fate;

  constructor(cause: unknown, fate: Fate) {
    super(messageOf(cause), { cause });
    this.fate = fate;
  }
}

/** A body without its end. */
export const cutShort = (): Error => new Error('the connection ended before the answer did');

/** There is no room for an optional stream. */
export const noRoom = (): KubeletError =>
  new KubeletError('exhausted', 'no room for another watch', { detail: { noRoom: true } });

export const toError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error(String(reason)));
