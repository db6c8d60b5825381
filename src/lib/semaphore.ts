// Bounded concurrency, first come first served.

export class Semaphore {
  #free: number;
  readonly #waiting: { resolve: () => void; signal: AbortSignal; onAbort: () => void }[] = [];

  constructor(permits: number) {
    this.#free = permits;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  async run<T>(signal: AbortSignal, fn: () => Promise<T>): Promise<T> {
    await this.#acquire(signal);
    try {
      return await fn();
    } finally {
      this.#release();
    }
  }

  #acquire(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1);
        reject(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
      };
      const entry = { resolve, signal, onAbort };
      this.#waiting.push(entry);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#free++;
      return;
    }
    next.signal.removeEventListener('abort', next.onAbort);
    next.resolve();
  }
}
