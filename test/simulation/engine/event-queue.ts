// What will happen, the next of it first. Most deadlines are taken back soon after they were set: those leave at once.

/** Earlier ones first; of the same time, in the order in which they were put in. */
export type Queued = {
  readonly at: number;
  readonly seq: number;
  /** In the queue; kept by it. */
  index: number;
};

const isBefore = (a: Queued, b: Queued): boolean => a.at < b.at || (a.at === b.at && a.seq < b.seq);

export class EventQueue<T extends Queued> {
  readonly #heap: T[] = [];

  get size(): number {
    return this.#heap.length;
  }

  get first(): T | undefined {
    return this.#heap[0];
  }

  add(event: T): void {
    this.#heap.push(event);
    this.#up(event, this.#heap.length - 1);
  }

  remove(event: T): void {
    const { index } = event;
    const last = this.#heap.pop();
    if (last === undefined || last === event) return;
    const above = this.#heap[(index - 1) >> 1];
    if (index > 0 && above !== undefined && isBefore(last, above)) this.#up(last, index);
    else this.#down(last, index);
  }

  #up(event: T, from: number): void {
    const heap = this.#heap;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as T;
      if (!isBefore(event, above)) break;
      heap[at] = above;
      above.index = at;
      at = parent;
    }
    heap[at] = event;
    event.index = at;
  }

  #down(event: T, from: number): void {
    const heap = this.#heap;
    const { length } = heap;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && isBefore(heap[child + 1] as T, heap[child] as T)) child++;
      const below = heap[child] as T;
      if (!isBefore(below, event)) break;
      heap[at] = below;
      below.index = at;
      at = child;
    }
    heap[at] = event;
    event.index = at;
  }
}
