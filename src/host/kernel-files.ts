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

  text(path: string): Promise<string> {
    return this.answer(
      () => readFile(path, 'utf8'),
      () => readFileSync(path, 'utf8'),
    );
  }

  /** What `usual` gives, or `direct` when the threads are taken. */
  async answer<T>(usual: () => Promise<T>, direct: () => T): Promise<T> {
    const clock = this.#clock;
    if (clock.monotonic() < this.#directUntil) return direct();
    const late = Promise.withResolvers<'late'>();
    const timer = clock.after(LATE_MS, () => late.resolve('late'));
    const answer = usual().then((value) => ({ value }));
    answer.catch(() => undefined); // it may come when nobody waits any more
    try {
      const first = await Promise.race([answer, late.promise]);
      if (first !== 'late') return first.value;
    } finally {
      timer.cancel();
    }
    this.#directUntil = clock.monotonic() + DIRECT_FOR_MS;
    return direct();
  }
}

/** Of this process: it has one set of threads. */
export const kernelFiles = new KernelFiles(systemClock);
