// What `up` says while it works: a line for each thing that is done, and on a terminal one more line that is rewritten,
// with what is being waited for.
import type { Clock } from '../../lib/clock.ts';

export type Terminal = {
  readonly out: (text: string) => void;
  readonly clock: Clock;
  /** Width of the terminal; 0 when the output goes elsewhere. */
  readonly columns: number;
};

const CLEAR_LINE = '\r\u001b[K';
const QUIET_HINT_MS = 5000;
const TICK_MS = 200;

export class Progress {
  readonly #io: Terminal;
  readonly #started: number;
  #hintAt: number;
  #drawnAt = -Infinity;

  constructor(io: Terminal) {
    this.#io = io;
    this.#started = io.clock.monotonic();
    this.#hintAt = this.#started + QUIET_HINT_MS;
  }

  /** Something is done. */
  tell(line: string): void {
    this.#hintAt = this.#io.clock.monotonic() + QUIET_HINT_MS;
    this.#io.out(`${this.#clear()}${this.#stamp()} ${line}\n`);
  }

  /** Something is not done yet. Without a terminal it is said every few seconds. */
  wait(line: string): void {
    const now = this.#io.clock.monotonic();
    if (this.#io.columns > 0) {
      if (now - this.#drawnAt < TICK_MS) return;
      this.#drawnAt = now;
      // A line that wraps could not be cleared again.
      this.#io.out(CLEAR_LINE + `${this.#stamp()} waiting: ${line}`.slice(0, this.#io.columns - 1));
    } else if (now > this.#hintAt) {
      this.#hintAt = now + QUIET_HINT_MS;
      this.#io.out(`${this.#stamp()} waiting: ${line}\n`);
    }
  }

  /** Calls `wait` until `work` is done. */
  async during<T>(line: string, work: Promise<T>): Promise<T> {
    const done = new AbortController();
    const ticks = (async () => {
      while (!done.signal.aborted) {
        this.wait(line);
        await this.#io.clock.sleep(TICK_MS, done.signal);
      }
    })();
    try {
      return await work;
    } finally {
      done.abort();
      await ticks;
      this.end();
    }
  }

  /** Leaves no half line behind. */
  end(): void {
    this.#io.out(this.#clear());
  }

  #clear(): string {
    if (this.#io.columns === 0 || this.#drawnAt === -Infinity) return '';
    this.#drawnAt = -Infinity;
    return CLEAR_LINE;
  }

  #stamp(): string {
    return `[${((this.#io.clock.monotonic() - this.#started) / 1000).toFixed(1).padStart(5)}s]`;
  }
}
