// Bounded concurrency, first come first served.
import { WaitingLine } from './waiting-line.ts';

export class Semaphore {
  #free: number;
  readonly #line = new WaitingLine();

  constructor(permits: number) {
    this.#free = permits;
  }

  get waiting(): number {
    return this.#line.length;
  }

  async run<T>(signal: AbortSignal, fn: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#line.wait(signal, this.#line.newPlace());
    try {
      return await fn();
    } finally {
      if (!this.#line.letIn()) this.#free++;
    }
  }
}
