// One at a time per key, first come first served; different keys do not wait for each other.
import { Semaphore } from './semaphore.ts';

export class KeyedLock {
  readonly #locks = new Map<string, { readonly semaphore: Semaphore; users: number }>();

  async run<T>(key: string, signal: AbortSignal, fn: () => Promise<T>): Promise<T> {
    const lock = this.#locks.get(key) ?? { semaphore: new Semaphore(1), users: 0 };
    this.#locks.set(key, lock);
    lock.users++;
    try {
      return await lock.semaphore.run(signal, fn);
    } finally {
      if (--lock.users === 0) this.#locks.delete(key);
    }
  }
}
