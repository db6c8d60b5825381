// Files of /proc and /sys. They are read by the file threads that everything in the process shares, which may all be taken
// by a disk that hangs. The kernel's own files wait for no disk: when the threads do not come to one, it is read directly,
// so that memory is watched and the node's status is told also then.
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { systemClock, type Clock } from '../lib/clock.ts';

/** Reading one takes microseconds. */
const LATE_MS = 1000;
/** After a late one others are read directly at once for so long. */
const DIRECT_FOR_MS = 5000;

export class KernelFiles {
  readonly #clock: Clock;
  #directUntil = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  text(path: string | Buffer): Promise<string> {
    return this.answer(
      () => readFile(path, 'utf8'),
      () => readFileSync(path, 'utf8'),
    );
  }

  /** What `usual` gives, or `direct` when the threads are taken. */
  answer<T>(usual: () => Promise<T>, direct: () => T): Promise<T> {
    const clock = this.#clock;
    // What comes after the first answer is for nobody.
    return new Promise<T>((resolve, reject) => {
      if (clock.monotonic() < this.#directUntil) return resolve(direct());
      const answer = usual();
      const timer = clock.after(LATE_MS, () => {
        this.#directUntil = clock.monotonic() + DIRECT_FOR_MS;
        try {
          resolve(direct());
        } catch (err) {
          reject(err as Error);
        }
      });
      answer.then(
        (value) => {
          timer.cancel();
          resolve(value);
        },
        (err: Error) => {
          timer.cancel();
          reject(err);
        },
      );
    });
  }
}

/** Of this process: it has one set of threads. */
export const kernelFiles = new KernelFiles(systemClock);
