// Where log lines go: text or JSON, to standard error or split between both streams, written at once. A reader that does
// not keep up costs lines, never the process: what cannot be written waits in a bounded buffer.
import { writeSync } from 'node:fs';
import type { Clock } from '../../lib/clock.ts';
import { errnoOf } from '../../lib/errors.ts';
import { formatJson, formatText, type Line, type LogSink } from '../../lib/logger.ts';

export type LogOutputOptions = {
  readonly format: 'text' | 'json';
  /** Informational lines to standard output, the rest to standard error. */
  readonly splitStream: boolean;
  /** With split streams: informational lines are gathered up to this many bytes. */
  readonly infoBufferBytes: number;
  readonly pid: number;
};

export type WriteFd = (fd: number, data: Buffer) => number;

const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** A reader that stalled is not asked again with every line. */
const RETRY_MS = 100;
const MAX_WRITE_BYTES = 64 * 1024;

export class LogOutput implements LogSink {
  readonly #clock: Clock;
  readonly #options: LogOutputOptions;
  readonly #err: Stream;
  readonly #info: Stream;
  #stuckSinceMs: number | undefined;

  constructor(clock: Clock, options: LogOutputOptions, write: WriteFd = writeSync) {
    this.#clock = clock;
    this.#options = options;
    this.#err = new Stream(clock, { fd: 2, gatherBytes: 0, write });
    const info = { fd: 1, gatherBytes: options.infoBufferBytes, write };
    this.#info = options.splitStream ? new Stream(clock, info) : this.#err;
  }

  write(line: Line): void {
    const text = this.#options.format === 'json' ? formatJson(line) : formatText(line, this.#options.pid);
    (line.severity === 'I' ? this.#info : this.#err).add(text);
    this.#note();
  }

  /** Writes everything that waits. Called now and then, and before the process ends. */
  flush(): void {
    this.#info.flush();
    this.#err.flush();
    this.#note();
  }

  /** For how long lines have been waiting for a reader. */
  stuckForMs(): number {
    return this.#stuckSinceMs === undefined ? 0 : this.#clock.monotonic() - this.#stuckSinceMs;
  }

  #note(): void {
    if (!this.#err.stuck && !this.#info.stuck) this.#stuckSinceMs = undefined;
    else this.#stuckSinceMs ??= this.#clock.monotonic();
  }
}

type StreamOptions = { readonly fd: number; readonly gatherBytes: number; readonly write: WriteFd };

class Stream {
  readonly #clock: Clock;
  readonly #o: StreamOptions;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #lost = 0;
  #retryAt = 0;
  stuck = false;

  constructor(clock: Clock, options: StreamOptions) {
    this.#clock = clock;
    this.#o = options;
  }

  add(text: string): void {
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#lost++;
    else this.#queue(text);
    if (this.#waitingBytes < this.#o.gatherBytes) return;
    if (!this.stuck || this.#clock.monotonic() >= this.#retryAt) this.flush();
  }

  flush(): void {
    try {
      while (this.#waiting.length > 0) {
        this.#writeSome();
        if (this.#waiting.length > 0 || this.#lost === 0) continue;
        this.#queue(`(${this.#lost} log lines lost: nobody read them in time)\n`);
        this.#lost = 0;
      }
      this.stuck = false;
    } catch (err) {
      this.stuck = errnoOf(err) === 'EAGAIN';
      this.#retryAt = this.#clock.monotonic() + RETRY_MS;
      // A closed stream stays closed: there is nobody left to tell.
      if (!this.stuck) this.#drop();
    }
  }

  #queue(text: string): void {
    const line = Buffer.from(text);
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
  }

  /** As many lines as fit into one write; a part that was not taken stays first in line. */
  #writeSome(): void {
    let [count, bytes] = [0, 0];
    do bytes += this.#waiting[count++]?.length ?? 0;
    while (count < this.#waiting.length && bytes + (this.#waiting[count]?.length ?? 0) <= MAX_WRITE_BYTES);
    const chunk = count === 1 ? (this.#waiting[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#waiting.slice(0, count));
    const written = this.#o.write(this.#o.fd, chunk);
    this.#waitingBytes -= written;
    this.#waiting.splice(0, count, ...(written < chunk.length ? [chunk.subarray(written)] : []));
  }

  #drop(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}
