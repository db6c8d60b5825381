// Virtual time. Everything that happens is an event of this queue; time moves to the next event only when no promise is
// left to settle. An event belongs to an owner, the agent's process of that time or the world; what is scheduled while an
// event runs belongs to the same owner. A process that is killed loses its events, and with them never runs again.
import { Random } from './random.ts';

export type Owner = { readonly name: string; alive: boolean };

type Event = {
  readonly at: number;
  readonly seq: number;
  readonly owner: Owner;
  run: (() => void) | undefined;
};

/** Of the real machine, kept before the globals are replaced. */
const turn = setImmediate;
const START_MS = Date.UTC(2026, 0, 1);

export class Scheduler {
  readonly world: Owner = { name: 'world', alive: true };
  /** What the agent draws: its own back-offs, names and identifiers. */
  readonly agentRandom: Random;
  /** How long things take in the world. */
  readonly latency: Random;
  readonly #heap: Event[] = [];
  #seq = 0;
  #mono = 0;
  #wallOffset = START_MS;
  #owner: Owner = this.world;
  /** Events run so far. */
  steps = 0;
  /** Called after each event, when all promises have settled. */
  onStep: () => void = () => undefined;

  constructor(seed: number) {
    this.agentRandom = new Random(seed, 'agent');
    this.latency = new Random(seed, 'latency');
  }

  /** Milliseconds since the machine was switched on. */
  monotonic(): number {
    return this.#mono;
  }

  /** Milliseconds since the epoch, as the machine believes. */
  wall(): number {
    return this.#wallOffset + this.#mono;
  }

  /** Steps the wall clock; time itself goes on as before. */
  jumpWall(ms: number): void {
    this.#wallOffset += ms;
  }

  /** Events that wait, those included that were taken back and whose time has not come. */
  get pending(): number {
    return this.#heap.length;
  }

  get owner(): Owner {
    return this.#owner;
  }

  /** Runs `fn` in `ms`; the answer takes it back. */
  after(ms: number, fn: () => void, owner: Owner = this.#owner): () => void {
    const event: Event = { at: this.#mono + Math.max(ms, 0), seq: this.#seq++, owner, run: fn };
    push(this.#heap, event);
    return () => (event.run = undefined);
  }

  /** Runs events until that time, or until `stop` says so. */
  async runUntil(untilMs: number, stop: () => boolean = () => false): Promise<void> {
    await settled();
    for (;;) {
      const next = this.#heap[0];
      if (next === undefined || next.at > untilMs || stop()) break;
      pop(this.#heap);
      const { run } = next;
      if (run === undefined || !next.owner.alive) continue;
      this.#mono = next.at;
      this.#owner = next.owner;
      this.steps++;
      next.run = undefined;
      run();
      await settled();
      this.#owner = this.world;
      this.onStep();
    }
    if (!stop()) this.#mono = Math.max(this.#mono, untilMs);
  }
}

/** All promises and ticks that are ready have run when the real event loop comes round. */
const settled = (): Promise<void> => new Promise((resolve) => turn(resolve));

const isBefore = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.seq < b.seq);

function push(heap: Event[], event: Event): void {
  let i = heap.length;
  heap.push(event);
  while (i > 0) {
    const parent = (i - 1) >> 1;
    const above = heap[parent] as Event;
    if (!isBefore(event, above)) break;
    heap[i] = above;
    i = parent;
  }
  heap[i] = event;
}

function pop(heap: Event[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let i = 0;
  for (;;) {
    let child = 2 * i + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++;
    const below = heap[child] as Event;
    if (!isBefore(below, last)) break;
    heap[i] = below;
    i = child;
  }
  heap[i] = last;
}
