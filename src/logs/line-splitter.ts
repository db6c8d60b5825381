// Chunks to lines, each with its newline. Keeps the start of a line until its end comes, but not without bound.

const NEWLINE = 0x0a;
const NONE: Buffer = Buffer.alloc(0);
/** Runtimes cut lines at some 16 KiB. Something far longer is no line and is passed over. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;

export class LineSplitter {
  #rest = NONE;
  #skipping = false;

  push(chunk: Buffer): readonly Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, start)) {
      const part = chunk.subarray(start, at + 1);
      if (this.#skipping) this.#skipping = false;
      else lines.push(this.#rest.length === 0 ? part : Buffer.concat([this.#rest, part]));
      this.#rest = NONE;
      start = at + 1;
    }
    this.#keep(chunk.subarray(start));
    return lines;
  }

  /** A last line without a newline, once nothing more will come. */
  remainder(): Buffer | undefined {
    const rest = this.#rest;
    this.#rest = NONE;
    return rest.length === 0 ? undefined : rest;
  }

  #keep(tail: Buffer): void {
    if (this.#skipping || tail.length === 0) return;
    if (this.#rest.length + tail.length > MAX_LINE_BYTES) {
      this.#skipping = true;
      this.#rest = NONE;
    } else {
      this.#rest = Buffer.concat([this.#rest, tail]);
    }
  }
}
