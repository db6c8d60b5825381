// Level-triggered work by key: one run per key at a time, a wake during a run means exactly one more run, and across
// keys a bounded number runs at once, oldest wake first. `work` re-reads the world; a wake carries nothing but the key.
import type { Clock } from './clock.ts';

export type KeyedRunnerOptions<K> = {
  /** Must not reject: what can go wrong with one key is handled where the key is understood. */
  work: (key: K) => Promise<void>;
  concurrency?: number;
  /** A run that takes longer waits for somebody: it no longer counts as one of those, and others go on. */
  patience?: { readonly clock: Clock; readonly ms: number };
};

export class KeyedRunner<K> {
  readonly #o: KeyedRunnerOptions<K>;
  readonly #queued = new Set<K>();
  readonly #running = new Map<K, Promise<void>>();
  /** Those of them that do not count. */
  #waiting = 0;
  #again = new Set<K>();
  #idle: (() => void)[] = [];
  #stopped = false;

  constructor(options: KeyedRunnerOptions<K>) {
    this.#o = options;
  }

  wake(key: K): void {
    if (this.#stopped) return;
    if (this.#running.has(key)) this.#again.add(key);
    else this.#queued.add(key);
    this.#fill();
  }

  /** Refuses new wakes and resolves when the runs under way have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#queued.clear();
    this.#again = new Set();
    await this.idle();
  }

  /** Resolves when nothing is queued or running. */
  idle(): Promise<void> {
    if (this.#running.size === 0 && this.#queued.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  get running(): number {
    return this.#running.size;
  }

  get queued(): number {
    return this.#queued.size;
  }

  #fill(): void {
    const limit = this.#o.concurrency ?? Infinity;
    for (const key of this.#queued) {
      if (this.#running.size - this.#waiting >= limit) return;
      this.#queued.delete(key);
      this.#running.set(key, this.#run(key));
    }
  }

  async #run(key: K): Promise<void> {
    await Promise.resolve();
    const { patience } = this.#o;
    let isWaiting = false;
    const timer = patience?.clock.after(patience.ms, () => {
      isWaiting = true;
      this.#waiting++;
      this.#fill();
    });
    try {
      await this.#o.work(key);
    } finally {
      timer?.cancel();
      if (isWaiting) this.#waiting--;
      this.#running.delete(key);
      if (this.#again.delete(key) && !this.#stopped) this.#queued.add(key);
      this.#fill();
      if (this.#running.size === 0 && this.#queued.size === 0) for (const done of this.#idle.splice(0)) done();
    }
  }
}
