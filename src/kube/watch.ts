// Reads the lines of one watch response as events. A stream gets an idle timer, never a total one.
import type { Status } from '../core/meta.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { transportError } from './api-error.ts';
import type { Body } from './exchange.ts';

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: T }
  | { readonly type: 'ERROR'; readonly object: Status };

/** No API object comes near this; a line that does is not one. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const NEWLINE = 10;

export async function* readWatch<T>(
  clock: Clock,
  body: Body,
  what: string,
  idleMs: number,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const idle = new IdleTimer(clock, idleMs, () =>
    body.destroy(new KubeletError('deadline', `watch ${what}: nothing heard for ${Math.round(idleMs / 1000)}s`)),
  );
  const lines = new Lines(what);
  try {
    for await (const chunk of chunksOf(body)) {
      idle.touch();
      for (const line of lines.push(chunk)) yield parseEvent<T>(line, what);
    }
  } catch (err) {
    throw transportError(`watch ${what}`, err, signal);
  } finally {
    idle.stop();
    body.destroy();
  }
  for (const line of lines.end()) yield parseEvent<T>(line, what);
}

/** Chunks of which nobody has read one; more stay with the server. */
const MAX_UNREAD = 16;

async function* chunksOf(body: Body): AsyncGenerator<Buffer, void, undefined> {
  const unread: Buffer[] = [];
  let end: Error | 'end' | undefined;
  let wake: () => void = () => undefined;
  const over = (how: Error | 'end'): void => {
    end = how;
    wake();
  };
  body.read({
    onData: (chunk) => {
      if (unread.push(chunk) === MAX_UNREAD) body.pause();
      wake();
    },
    onEnd: () => over('end'),
    onError: over,
  });
  for (;;) {
    for (let chunk = unread.shift(); chunk !== undefined; chunk = unread.shift()) {
      yield chunk;
      if (unread.length === 0) body.resume();
    }
    if (end === 'end') return;
    if (end !== undefined) throw end;
    await new Promise<void>((resolve) => (wake = resolve));
  }
}

/** Cuts bytes into lines; each byte is looked at once, however a long line is cut into chunks. */
class Lines {
  readonly #what: string;
  #parts: Buffer[] = [];
  #size = 0;

  constructor(what: string) {
    this.#what = what;
  }

  *push(chunk: Buffer): Generator<string> {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      this.#parts.push(chunk.subarray(from, at));
      yield* this.end();
      from = at + 1;
    }
    if (from === chunk.length) return;
    this.#parts.push(chunk.subarray(from));
    this.#size += chunk.length - from;
    if (this.#size > MAX_LINE_BYTES) throw new KubeletError('invalid', `watch ${this.#what}: a line never ends`);
  }

  /** What there is of the line under way. */
  *end(): Generator<string> {
    const line = (this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts))?.toString('utf8') ?? '';
    this.#parts = [];
    this.#size = 0;
    if (line.trim() !== '') yield line;
  }
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
