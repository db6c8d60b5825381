// Many due times, one timer. Items that are due at the same time are handed over together.
import type { Clock, Timer } from '../lib/clock.ts';

type Entry<T> = { readonly item: T; readonly at: number; readonly seq: number };

export class BeatQueue<T extends object> {
  readonly #clock: Clock;
  readonly #onDue: (item: T) => void;
  readonly #heap: Entry<T>[] = [];
  /** The entry of each item that still counts; older ones in the heap are skipped. */
  readonly #current = new Map<T, Entry<T>>();
  #seq = 0;
  #timer: { readonly at: number; readonly timer: Timer } | undefined;

  constructor(clock: Clock, onDue: (item: T) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#current.size;
  }

  /** Due at `at` (monotonic), instead of whenever it was due before. */
  schedule(item: T, at: number): void {
    const entry = { item, at, seq: this.#seq++ };
    this.#current.set(item, entry);
    this.#push(entry);
    this.#arm();
  }

  cancel(item: T): void {
    this.#current.delete(item);
  }

  has(item: T): boolean {
    return this.#current.has(item);
  }

  stop(): void {
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    this.#heap.length = 0;
    this.#current.clear();
  }

  #arm(): void {
    const at = this.#heap[0]?.at;
    if (at === undefined || (this.#timer !== undefined && this.#timer.at <= at)) return;
    this.#timer?.timer.cancel();
    this.#timer = { at, timer: this.#clock.after(at - this.#clock.monotonic(), () => this.#fire()) };
  }

  #fire(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    const due: T[] = [];
    for (let top = this.#heap[0]; top !== undefined && top.at <= now; top = this.#heap[0]) {
      this.#pop();
      if (this.#current.get(top.item) !== top) continue;
      this.#current.delete(top.item);
      due.push(top.item);
    }
    for (const item of due) this.#onDue(item);
    this.#arm();
  }

  #push(entry: Entry<T>): void {
    const heap = this.#heap;
    let i = heap.push(entry) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!before(entry, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
  }
}

const before = <T>(a: Entry<T>, b: Entry<T>): boolean => a.at < b.at || (a.at === b.at && a.seq < b.seq);
