// Reads the lines of one watch response as events. A stream gets an idle timer, never a total one.
import type { IncomingMessage } from 'node:http';
import { StringDecoder } from 'node:string_decoder';
import type { Status } from '../core/meta.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { transportError } from './api-error.ts';

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: T }
  | { readonly type: 'ERROR'; readonly object: Status };

/** No API object comes near this; a line that does is not one. */
const MAX_LINE = 64 * 1024 * 1024;

export async function* readWatch<T>(
  clock: Clock,
  response: IncomingMessage,
  what: string,
  idleMs: number,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const decoder = new StringDecoder('utf8');
  const idle = new IdleTimer(clock, idleMs, () =>
    response.destroy(new KubeletError('deadline', `watch ${what}: nothing heard for ${Math.round(idleMs / 1000)}s`)),
  );
  let rest = '';
  try {
    for await (const chunk of response) {
      idle.touch();
      const lines = (rest + decoder.write(chunk as Buffer)).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > MAX_LINE) throw new KubeletError('invalid', `watch ${what}: a line never ends`);
      for (const line of lines) if (line.trim() !== '') yield parseEvent<T>(line, what);
    }
  } catch (err) {
    throw transportError(`watch ${what}`, err, signal);
  } finally {
    idle.stop();
    response.destroy();
  }
  if (rest.trim() !== '') yield parseEvent<T>(rest, what);
}

const TYPES = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']);

function parseEvent<T>(line: string, what: string): WatchEvent<T> {
  let event: WatchEvent<T> | null = null;
  try {
    event = JSON.parse(line) as WatchEvent<T> | null;
  } catch {
    // reported below; the text itself may hold a Secret and goes nowhere
  }
  if (event === null || !TYPES.has(event.type) || typeof event.object !== 'object' || event.object === null) {
    throw new KubeletError('unavailable', `watch ${what}: a line is broken`);
  }
  return event;
}

/** Fires after `ms` without a `touch`; touching costs no timer. */
class IdleTimer {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #fire: () => void;
  #last: number;
  #timer: Timer;

  constructor(clock: Clock, ms: number, fire: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#fire = fire;
    this.#last = clock.monotonic();
    this.#timer = clock.after(ms, () => this.#check());
  }

  touch(): void {
    this.#last = this.#clock.monotonic();
  }

  stop(): void {
    this.#timer.cancel();
  }

  #check(): void {
    const left = this.#last + this.#ms - this.#clock.monotonic();
    if (left <= 0) this.#fire();
    else this.#timer = this.#clock.after(left, () => this.#check());
  }
}
