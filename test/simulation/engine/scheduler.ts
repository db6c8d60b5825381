// Virtual time. Everything that happens is an event of this queue; time moves to the next event only when no promise is
// left to settle. An event belongs to an owner, the agent's process of that time or the world; what is scheduled while an
// event runs belongs to the same owner. A process that is killed loses its events, and with them never runs again.
import { Random } from './random.ts';

export type Owner = { readonly name: string; alive: boolean };

/** Something that will happen; also what a timer's handle is. */
class Event {
  readonly at: number;
  readonly seq: number;
  readonly owner: Owner;
  run: (() => void) | undefined;
  readonly #scheduler: Scheduler;

  constructor(scheduler: Scheduler, at: number, seq: number, owner: Owner, run: () => void) {
    this.#scheduler = scheduler;
    this.at = at;
    this.seq = seq;
    this.owner = owner;
    this.run = run;
  }

  cancel(): void {
    if (this.run === undefined) return;
    this.run = undefined;
    this.#scheduler.tookBack();
  }
  unref(): this {
    return this;
  }
  ref(): this {
    return this;
  }
}

/** Of the real machine, kept before the globals are replaced. */
const turn = setImmediate;
/** Now and then the real process has its turn: signals, output. */
const EVENTS_A_TURN = 2000;
const START_MS = Date.UTC(2026, 0, 1);
/** Events that were taken back are swept out when there are so many, and more of them than others. */
const SWEEP = 1000;

export class Scheduler {
  readonly world: Owner = { name: 'world', alive: true };
  /** What the agent draws: its own back-offs, names and identifiers. */
  readonly agentRandom: Random;
  /** How long things take in the world. */
  readonly latency: Random;
  #heap: Event[] = [];
  #dead = 0;
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

  /** Events that wait. */
  get pending(): number {
    return this.#heap.length - this.#dead;
  }

  /** An event will not run. Most deadlines are never reached: without a sweep they would be most of the queue. */
  tookBack(): void {
    this.#dead++;
    if (this.#dead < SWEEP || this.#dead < this.#heap.length / 2) return;
    // What is sorted is a heap.
    this.#heap = this.#heap.filter((event) => event.run !== undefined).sort((a, b) => (isBefore(a, b) ? -1 : 1));
    this.#dead = 0;
  }

  get owner(): Owner {
    return this.#owner;
  }

  /** Runs `fn` in `ms`, unless it is taken back. */
  after(ms: number, fn: () => void, owner: Owner = this.#owner): Event {
    const event = new Event(this, this.#mono + Math.max(ms, 0), this.#seq++, owner, fn);
    push(this.#heap, event);
    return event;
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
    if (run === undefined) return void this.#dead--;
    event.run = undefined;
    if (!event.owner.alive) return;
    this.#mono = event.at;
    this.#owner = event.owner;
    this.steps++;
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
