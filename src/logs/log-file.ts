// A log file that is open: its lines from a position on, whatever happens to its name meanwhile.
import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { openRegular } from '../host/files/open-regular.ts';
import { LineSplitter } from './line-splitter.ts';

const NEWLINE = 0x0a;
const CHUNK_BYTES = 64 * 1024;
const TAIL_BLOCK_BYTES = 16 * 1024;

export class LogFile {
  readonly inode: string;
  readonly #handle: FileHandle;
  #position = 0;
  #splitter = new LineSplitter();

  private constructor(handle: FileHandle, info: Stats) {
    this.#handle = handle;
    this.inode = inodeOf(info);
  }

  static async open(path: string): Promise<LogFile> {
    const handle = await openRegular(path);
    try {
      return new LogFile(handle, await handle.stat());
    } catch (err) {
      await handle.close();
      throw err;
    }
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  seek(position: number): void {
    this.#position = position;
    this.#splitter = new LineSplitter();
  }

  /** Complete lines, up to `end`, that are there now; an empty list at the end of the file. */
  async lines(end = Infinity): Promise<readonly Buffer[]> {
    for (;;) {
      const want = Math.min(CHUNK_BYTES, end - this.#position);
      if (want <= 0) return [];
      const chunk = Buffer.allocUnsafe(want);
      const { bytesRead } = await this.#handle.read(chunk, 0, want, this.#position);
      if (bytesRead === 0) {
        await this.#rewindIfTruncated();
        return [];
      }
      this.#position += bytesRead;
      const lines = this.#splitter.push(chunk.subarray(0, bytesRead));
      if (lines.length > 0) return lines;
    }
  }

  /** A last line without its newline, once nothing more will come. */
  remainder(): Buffer | undefined {
    return this.#splitter.remainder();
  }

  /** Where the last `count` lines begin, or the last `maxBytes` if that is later. A line without its newline is not yet one. */
  async tailStart(count: number, maxBytes = Infinity): Promise<number> {
    const size = await this.size();
    let left = count;
    const floor = Math.max(0, size - maxBytes);
    const block = Buffer.allocUnsafe(TAIL_BLOCK_BYTES);
    for (let end = size; end > floor;) {
      const start = Math.max(floor, end - TAIL_BLOCK_BYTES);
      const { bytesRead } = await this.#handle.read(block, 0, end - start, start);
      for (let i = bytesRead - 1; i >= 0; i--) if (block[i] === NEWLINE && left-- === 0) return start + i + 1;
      end = start;
    }
    return floor;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  /** Some rotate by truncating. */
  async #rewindIfTruncated(): Promise<void> {
    if ((await this.size()) < this.#position) this.seek(0);
  }
}

export const inodeOf = (info: Pick<Stats, 'dev' | 'ino'>): string => `${info.dev}:${info.ino}`;
