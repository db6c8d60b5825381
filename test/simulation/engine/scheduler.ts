// Virtual time. Everything that happens is an event of this queue; time moves to the next event only when no promise is
// left to settle. An event belongs to an owner, the agent's process of that time or the world; what is scheduled while an
// event runs belongs to the same owner. A process that is killed loses its events, and with them never runs again.
import { EventQueue } from './event-queue.ts';
import { Random } from './random.ts';

export type Owner = { readonly name: string; alive: boolean };

/** Something that will happen; also what a timer's handle is. */
class Event {
  readonly at: number;
  readonly seq: number;
  readonly owner: Owner;
  run: (() => void) | undefined;
  index = 0;
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
    this.#scheduler.takeBack(this);
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

export class Scheduler {
  readonly world: Owner = { name: 'world', alive: true };
  /** What the agent draws: its own back-offs, names and identifiers. */
  readonly agentRandom: Random;
  /** How long things take in the world. */
  readonly latency: Random;
  readonly #queue = new EventQueue<Event>();
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
    return this.#queue.size;
  }

  /** An event will not run. */
  takeBack(event: Event): void {
    this.#queue.remove(event);
  }

  get owner(): Owner {
    return this.#owner;
  }

  /** Runs `fn` in `ms`, unless it is taken back. */
  after(ms: number, fn: () => void, owner: Owner = this.#owner): Event {
    const event = new Event(this, this.#mono + Math.max(ms, 0), this.#seq++, owner, fn);
    this.#queue.add(event);
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
          const next = this.#queue.first;
          if (next === undefined || next.at > untilMs || stop()) return resolve(false);
          this.#queue.remove(next);
          this.#run(next);
        }
        resolve(true);
      });
    });
  }

  #run(event: Event): void {
    const { run } = event;
    event.run = undefined;
    if (run === undefined || !event.owner.alive) return;
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
