// Parsed lines to what a reader gets: since, stream, time stamps, byte limit. One per reader, as it counts.
import { fixedTime, nanosOf, parseCriLine, parseDockerLine, type LineParser, type LogLine } from './line.ts';

export type RenderOptions = {
  readonly sinceNanos?: bigint;
  readonly limitBytes?: number;
  readonly timestamps?: boolean;
  readonly stream?: 'All' | 'Stdout' | 'Stderr';
};

const NEWLINE = 0x0a;

export class Rendering {
  readonly #options: RenderOptions;
  #parser: LineParser | undefined;
  #atLineStart = true;
  #left: number;
  /** Lines nobody could read. */
  malformed = 0;

  constructor(options: RenderOptions) {
    this.#options = options;
    this.#left = options.limitBytes ?? Infinity;
  }

  /** The byte limit is reached. */
  get full(): boolean {
    return this.#left <= 0;
  }

  render(lines: readonly Buffer[]): Buffer {
    const parts: Buffer[] = [];
    for (const raw of lines) {
      const line = this.#parse(raw);
      if (line === undefined) {
        this.malformed++;
        continue;
      }
      this.#write(line, parts);
      if (this.full) break;
    }
    return Buffer.concat(parts);
  }

  /** The first line that can be read decides the format of all. */
  #parse(raw: Buffer): LogLine | undefined {
    if (this.#parser !== undefined) return this.#parser(raw);
    for (const parser of [parseCriLine, parseDockerLine]) {
      const line = parser(raw);
      if (line !== undefined) {
        this.#parser = parser;
        return line;
      }
    }
    return undefined;
  }

  #write(line: LogLine, parts: Buffer[]): void {
    const { sinceNanos, timestamps, stream } = this.#options;
    const startsLine = this.#atLineStart;
    this.#atLineStart = line.content.length === 0 || line.content.at(-1) === NEWLINE;
    if (sinceNanos !== undefined && nanosOf(line.time) < sinceNanos) return;
    if ((stream === 'Stdout' && line.stream !== 'stdout') || (stream === 'Stderr' && line.stream !== 'stderr')) return;
    if (timestamps === true && startsLine) this.#put(Buffer.from(`${fixedTime(line.time)} `), parts);
    this.#put(line.content, parts);
  }

  #put(bytes: Buffer, parts: Buffer[]): void {
    const some = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes;
    this.#left -= some.length;
    if (some.length > 0) parts.push(some);
  }
}
