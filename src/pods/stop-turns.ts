// Crowds of pods that have to go: while the processors are busy only a few are stopped at a time, in the order they came,
// so that most are gone early and the runtime is not asked for everything at once. Whoever hears of its end later loses
// nothing of its grace period. As soon as the processors have nothing to do, because containers take their time to end,
// everybody else is let in.
import { abortable } from '../lib/abort.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { WaitingLine } from '../lib/waiting-line.ts';
import type { PodStops } from './terminate-pod.ts';

export type StopTurnsOptions = {
  /** How many stops may be under way while the processors are busy. */
  readonly atOnce: number;
  /** How much of the processors was idle since it was asked last, between 0 and 1. */
  readonly idleShare: () => number;
};

/** One that takes longer waits for its containers, and others may begin. */
const HOLD_MS = 1000;
/** Who has no more grace than this is in a hurry: a deletion by force, a hard eviction. The least that a worker gives. */
const NO_GRACE_SECONDS = 1;
/** Nobody waits for more than this share of its own grace period, nor longer than the longest wait. */
const SHARE_OF_GRACE = 1 / 6;
const LONGEST_WAIT_MS = 5000;
/** While pods wait it is looked so often whether the machine has nothing to do. */
const IDLE_LOOK_MS = 50;
const IDLE_SHARE = 0.5;

export class StopTurns implements PodStops {
  readonly #clock: Clock;
  readonly #o: StopTurnsOptions;
  readonly #line = new WaitingLine();
  /** Stops that have their turn. */
  #underWay = 0;
  #looking: Timer | undefined;
  readonly #whenQuiet: (() => void)[] = [];

  constructor(clock: Clock, options: StopTurnsOptions) {
    this.#clock = clock;
    this.#o = options;
  }

  /** How many pods wait for their turn. */
  get waiting(): number {
    return this.#line.length;
  }

  /** Resolves when nobody waits and nobody has a turn: a good moment for work that can wait. */
  quiet(signal: AbortSignal): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve();
    return abortable(signal, new Promise((resolve) => this.#whenQuiet.push(resolve)));
  }

  async run<T>(graceSeconds: number, signal: AbortSignal, stop: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#underWay < this.#o.atOnce || graceSeconds <= NO_GRACE_SECONDS) this.#underWay++;
    else await this.#wait(graceSeconds, signal);
    let isOver = false;
    const leave = (): void => {
      if (isOver) return;
      isOver = true;
      this.#underWay--;
      this.#next();
    };
    const hold = this.#clock.after(HOLD_MS, leave);
    try {
      return await stop();
    } finally {
      hold.cancel();
      leave();
    }
  }

  async #wait(graceSeconds: number, signal: AbortSignal): Promise<void> {
    const place = this.#line.newPlace();
    const waitMs = Math.min(LONGEST_WAIT_MS, graceSeconds * 1000 * SHARE_OF_GRACE);
    const entered = this.#line.wait(signal, place);
    const enough = this.#clock.after(waitMs, () => {
      if (this.#line.letInPlace(place)) this.#underWay++;
    });
    this.#lookWhilePodsWait();
    try {
      await entered;
    } finally {
      enough.cancel();
    }
  }

  #next(): void {
    if (this.#underWay < this.#o.atOnce) this.#letIn(1);
    if (this.#underWay === 0 && this.waiting === 0) for (const resolve of this.#whenQuiet.splice(0)) resolve();
  }

  #letIn(most: number): void {
    for (let n = 0; n < most && this.#line.letIn(); n++) this.#underWay++;
  }

  #lookWhilePodsWait(): void {
    const { idleShare, atOnce } = this.#o;
    if (this.#looking !== undefined || this.waiting === 0) return;
    idleShare();
    const look = (): void => {
      this.#looking = undefined;
      if (this.waiting === 0) return;
      // Twice as many with every look, so that hundreds have heard of it within half a second.
      if (idleShare() > IDLE_SHARE) this.#letIn(Math.max(atOnce, this.#underWay));
      this.#looking = this.#clock.after(IDLE_LOOK_MS, look);
    };
    this.#looking = this.#clock.after(IDLE_LOOK_MS, look);
  }
}
