// Reads /dev/kmsg without blocking and without a thread: the kernel hands its records out of memory, and writes some of
// them for every pod that comes (a bridge tells of each of its ports).
import { constants, readSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { nextTurn } from '../lib/clock.ts';
import { errnoOf } from '../lib/errors.ts';
import { kmsgText } from './oom-messages.ts';

/** The kernel hands out one record per read and refuses smaller buffers than its longest record. */
const RECORD_BYTES = 16 * 1024;
/** A kernel in trouble writes thousands; others want their turn as well. */
const AT_A_TIME = 100;

export class Kmsg {
  readonly #file: FileHandle;
  readonly #buffer = Buffer.alloc(RECORD_BYTES);

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Positioned behind everything logged so far. */
  static async open(path = '/dev/kmsg'): Promise<Kmsg> {
    const kmsg = new Kmsg(await open(path, constants.O_RDONLY | constants.O_NONBLOCK));
    await kmsg.take();
    return kmsg;
  }

  /** All messages since the last call. */
  async take(): Promise<readonly string[]> {
    const messages: string[] = [];
    for (;;) {
      try {
        const bytesRead = readSync(this.#file.fd, this.#buffer, 0, RECORD_BYTES, null);
        if (bytesRead === 0) return messages;
        messages.push(kmsgText(this.#buffer.toString('utf8', 0, bytesRead)));
        if (messages.length % AT_A_TIME === 0) await nextTurn();
      } catch (err) {
        // EPIPE: the ring went over records we had not read yet; the next read continues with the oldest left.
        if (errnoOf(err) === 'EPIPE') continue;
        if (errnoOf(err) === 'EAGAIN') return messages;
        throw err;
      }
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
