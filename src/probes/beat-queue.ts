// Many due times, one timer. Keys that are due at the same time are handed over together. What is cancelled leaves at once: a
// period may be 68 years.
import type { Clock, Timer } from '../lib/clock.ts';

type Entry<K> = { readonly key: K; readonly at: number; readonly seq: number; index: number };

export class BeatQueue<K extends string> {
  readonly #clock: Clock;
  readonly #onDue: (key: K) => void;
  /** A binary heap; each entry knows its index. */
  readonly #heap: Entry<K>[] = [];
  readonly #entries = new Map<K, Entry<K>>();
  #seq = 0;
  #timer: { readonly at: number; readonly timer: Timer } | undefined;

  constructor(clock: Clock, onDue: (key: K) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** Due at `at` (monotonic), instead of whenever it was due before. */
  schedule(key: K, at: number): void {
    this.#remove(key);
    const entry = { key, at, seq: this.#seq++, index: this.#heap.length };
    this.#entries.set(key, entry);
    this.#heap.push(entry);
    this.#rise(entry);
    this.#arm();
  }

  cancel(key: K): void {
    this.#remove(key);
    if (this.#heap.length === 0) this.#disarm();
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  stop(): void {
    this.#disarm();
    this.#heap.length = 0;
    this.#entries.clear();
  }

  #disarm(): void {
    this.#timer?.timer.cancel();
    this.#timer = undefined;
  }

  #arm(): void {
    const at = this.#heap[0]?.at;
    if (at === undefined || (this.#timer !== undefined && this.#timer.at <= at)) return;
    this.#disarm();
    this.#timer = { at, timer: this.#clock.after(at - this.#clock.monotonic(), () => this.#fire()) };
  }

  #fire(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    const due: K[] = [];
    for (let top = this.#heap[0]; top !== undefined && top.at <= now; top = this.#heap[0]) {
      this.#remove(top.key);
      due.push(top.key);
    }
    for (const key of due) this.#onDue(key);
    this.#arm();
  }

  #remove(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    const last = this.#heap.pop();
    if (last === undefined || last === entry) return;
    this.#put(last, entry.index);
    this.#rise(last);
    this.#sink(last);
  }

  #put(entry: Entry<K>, index: number): void {
    this.#heap[index] = entry;
    entry.index = index;
  }

  #rise(entry: Entry<K>): void {
    while (entry.index > 0) {
      const { index } = entry;
      const parent = this.#heap[(index - 1) >> 1];
      if (parent === undefined || !before(entry, parent)) return;
      this.#put(entry, parent.index);
      this.#put(parent, index);
    }
  }

  #sink(entry: Entry<K>): void {
    for (;;) {
      const { index } = entry;
      const [left, right] = [this.#heap[2 * index + 1], this.#heap[2 * index + 2]];
      const child = left !== undefined && right !== undefined && before(right, left) ? right : left;
      if (child === undefined || !before(child, entry)) return;
      this.#put(entry, child.index);
      this.#put(child, index);
    }
  }
}

const before = <K>(a: Entry<K>, b: Entry<K>): boolean => a.at < b.at || (a.at === b.at && a.seq < b.seq);
