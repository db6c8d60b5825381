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
/** Now and then the real process has its turn: signals, output. */
const EVENTS_A_TURN = 2000;
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
    while (await this.#someUntil(untilMs, stop));
    if (!stop()) this.#mono = Math.max(this.#mono, untilMs);
  }

  /** Runs a lot of events in one turn of the real event loop; false when there are no more. */
  #someUntil(untilMs: number, stop: () => boolean): Promise<boolean> {
    return new Promise((resolve) => {
      turn(() => {
        for (let i = 0; i < EVENTS_A_TURN; i++) {
          const next = this.#heap[0];
          if (next === undefined || next.at > untilMs || stop()) return resolve(false);
          pop(this.#heap);
          this.#run(next);
        }
        resolve(true);
      });
    });
  }

  #run(event: Event): void {
    const { run } = event;
    if (run === undefined || !event.owner.alive) return;
    this.#mono = event.at;
    this.#owner = event.owner;
    this.steps++;
    event.run = undefined;
    run();
    settle();
    this.#owner = this.world;
  }
}

/** Runs all promises and ticks that are ready, and those that become ready by it; not to be called from one of them. */
const settle = (process as unknown as { _tickCallback: () => void })._tickCallback;

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
