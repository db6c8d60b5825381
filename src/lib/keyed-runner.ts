// Level-triggered work by key: one run per key at a time, a wake during a run means exactly one more run, and across
// keys a bounded number runs at once, oldest wake first. `work` re-reads the world; a wake carries nothing but the key.

export type KeyedRunnerOptions<K> = {
  /** Must not reject: what can go wrong with one key is handled where the key is understood. */
  work: (key: K) => Promise<void>;
  concurrency?: number;
};

export class KeyedRunner<K> {
  readonly #o: KeyedRunnerOptions<K>;
  readonly #queued = new Set<K>();
  readonly #running = new Map<K, Promise<void>>();
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
      if (this.#running.size >= limit) return;
      this.#queued.delete(key);
      this.#running.set(key, this.#run(key));
    }
  }

  async #run(key: K): Promise<void> {
    await Promise.resolve();
    try {
      await this.#o.work(key);
    } finally {
      this.#running.delete(key);
      if (this.#again.delete(key) && !this.#stopped) this.#queued.add(key);
      this.#fill();
      if (this.#running.size === 0 && this.#queued.size === 0) for (const done of this.#idle.splice(0)) done();
    }
  }
}
