// Bursts: pods are started in the order they came, a few at a time, so that the first are up while the last still wait
// and the runtime is not asked for everything at once. A turn is for work: a start that only waits (for a hook, a pull, a
// volume) leaves it, and one that takes far longer than others lately gives it up and goes on beside them. So does the
// oldest while the processors are idle: a runtime that waits more than it works is asked for more.
import { abortable } from '../lib/abort.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { WaitingLine } from '../lib/waiting-line.ts';
import type { Turn, Turns } from './sync-pod.ts';

export type StartTurnsOptions = {
  /** How many starts may be under way. */
  readonly atOnce: number;
  /** How much of the processors was idle since it was asked last, between 0 and 1. */
  readonly idleShare?: () => number;
};

const SHORTEST_HOLD_MS = 1000;
/** Before anything is known about this machine. */
const FIRST_HOLD_MS = 5000;
const LONGEST_HOLD_MS = 10_000;
/** A turn may last this many times what a start usually takes. */
const PATIENCE = 4;
const REMEMBERED = 9;
/** While pods wait it is looked so often whether the machine has nothing to do. */
const IDLE_LOOK_MS = 250;
const IDLE_SHARE = 0.5;
/** As many times the usual number may be under way then. */
const MOST = 4;

export class StartTurns implements Turns {
  readonly #clock: Clock;
  readonly #o: StartTurnsOptions;
  #free: number;
  /** In the order they came; one that comes back has its old place. */
  readonly #line = new WaitingLine();
  /** How those who have their turn give it up, the oldest first. */
  readonly #holders = new Set<() => void>();
  #underWay = 0;
  #looking: Timer | undefined;
  readonly #recentMs: number[] = [];
  readonly #whenQuiet: (() => void)[] = [];

  constructor(clock: Clock, options: StartTurnsOptions) {
    this.#clock = clock;
    this.#o = options;
    this.#free = options.atOnce;
  }

  /** How many pods wait for their turn. */
  get waiting(): number {
    return this.#line.length;
  }

  /** How long one may hold its turn: on a slow machine all starts are slow, and none of them is the odd one out. */
  get holdMs(): number {
    const sorted = [...this.#recentMs].sort((a, b) => a - b);
    const usualMs = sorted[Math.floor(sorted.length / 2)];
    if (usualMs === undefined) return FIRST_HOLD_MS;
    return Math.min(LONGEST_HOLD_MS, Math.max(SHORTEST_HOLD_MS, PATIENCE * usualMs));
  }

  /** Resolves when nobody waits and nobody has a turn: a good moment for work that can wait. */
  quiet(signal: AbortSignal): Promise<void> {
    if (this.#isQuiet) return Promise.resolve();
    return abortable(signal, new Promise((resolve) => this.#whenQuiet.push(resolve)));
  }

  run<T>(signal: AbortSignal, start: (turn: Turn) => Promise<T>): Promise<T> {
    return this.#inTurn(this.#line.newPlace(), signal, start);
  }

  async #inTurn<T>(place: number, signal: AbortSignal, start: (turn: Turn) => Promise<T>): Promise<T> {
    await this.#enter(place, signal);
    const from = this.#clock.monotonic();
    const giveUp = (): void => {
      if (this.#holders.delete(giveUp)) this.#next();
    };
    this.#holders.add(giveUp);
    this.#underWay++;
    const timer = this.#clock.after(this.holdMs, giveUp);
    let isOver = false;
    const leave = (): void => {
      if (isOver) return;
      isOver = true;
      timer.cancel();
      this.#underWay--;
      giveUp();
    };
    const turn: Turn = {
      leave,
      resume: (work) => (isOver ? this.#inTurn(place, signal, work) : work(turn)),
    };
    try {
      const started = await start(turn);
      // One that had to wait says nothing of how long starts take.
      if (!isOver) this.#remember(this.#clock.monotonic() - from);
      return started;
    } finally {
      leave();
    }
  }

  async #enter(place: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    const entered = this.#line.wait(signal, place);
    this.#lookWhilePodsWait();
    await entered;
  }

  #next(): void {
    if (!this.#line.letIn()) this.#free++;
    this.#tellQuiet();
  }

  #lookWhilePodsWait(): void {
    const { idleShare, atOnce } = this.#o;
    if (idleShare === undefined || this.#looking !== undefined || this.waiting === 0) return;
    idleShare();
    const look = (): void => {
      this.#looking = undefined;
      if (this.waiting === 0) return;
      const [oldest] = this.#holders;
      if (idleShare() > IDLE_SHARE && this.#underWay < MOST * atOnce) oldest?.();
      this.#looking = this.#clock.after(IDLE_LOOK_MS, look);
    };
    this.#looking = this.#clock.after(IDLE_LOOK_MS, look);
  }

  get #isQuiet(): boolean {
    return this.#free === this.#o.atOnce;
  }

  #tellQuiet(): void {
    if (this.#isQuiet) for (const resolve of this.#whenQuiet.splice(0)) resolve();
  }

  #remember(ms: number): void {
    this.#recentMs.push(ms);
    if (this.#recentMs.length > REMEMBERED) this.#recentMs.shift();
  }
}
