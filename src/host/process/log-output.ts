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

export type WriteFd = (fd: number, data: string) => number;

const MAX_WAITING = 4 * 1024 * 1024;

export class LogOutput implements LogSink {
  readonly #clock: Clock;
  readonly #options: LogOutputOptions;
  readonly #err: Stream;
  readonly #info: Stream;
  #stuckSinceMs: number | undefined;

  constructor(clock: Clock, options: LogOutputOptions, write: WriteFd = writeSync) {
    this.#clock = clock;
    this.#options = options;
    this.#err = new Stream(2, 0, write);
    this.#info = options.splitStream ? new Stream(1, options.infoBufferBytes, write) : this.#err;
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

class Stream {
  readonly #fd: number;
  readonly #gather: number;
  readonly #write: WriteFd;
  #waiting = '';
  #lost = 0;
  stuck = false;

  constructor(fd: number, gather: number, write: WriteFd) {
    this.#fd = fd;
    this.#gather = gather;
    this.#write = write;
  }

  add(text: string): void {
    if (this.#waiting.length > MAX_WAITING) {
      this.#lost++;
      return;
    }
    this.#waiting += text;
    if (this.#waiting.length >= this.#gather) this.flush();
  }

  flush(): void {
    while (this.#waiting !== '') {
      const lost = this.#lost === 0 ? '' : `(${this.#lost} log lines lost: nobody read them in time)\n`;
      const data = this.#waiting + lost;
      try {
        const written = this.#write(this.#fd, data);
        this.#lost = 0;
        this.#waiting = Buffer.from(data).subarray(written).toString();
      } catch (err) {
        this.stuck = errnoOf(err) === 'EAGAIN';
        // A closed stream stays closed: there is nobody left to tell.
        if (!this.stuck) this.#waiting = '';
        return;
      }
    }
    this.stuck = false;
  }
}
