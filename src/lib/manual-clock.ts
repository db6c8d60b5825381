// A Clock that moves only when told to, for tests of anything that waits.
import { nextTurn, sleepOn, type Clock, type Timer } from './clock.ts';

type Pending = { at: number; seq: number; fn: () => void };

export class ManualClock implements Clock {
  #now: number;
  #mono = 0;
  #seq = 0;
  readonly #timers = new Set<Pending>();
  readonly #random: () => number;

  constructor(startMs = Date.UTC(2026, 0, 1), random: () => number = () => 0) {
    this.#now = startMs;
    this.#random = random;
  }

  now(): number {
    return this.#now;
  }

  nowNanos(): bigint {
    return BigInt(Math.trunc(this.#now)) * 1_000_000n;
  }

  monotonic(): number {
    return this.#mono;
  }

  random(): number {
    return this.#random();
  }

  /** How many timers are pending: a test's check that nothing is left over. */
  get pending(): number {
    return this.#timers.size;
  }

  after(ms: number, fn: () => void): Timer {
    const entry: Pending = { at: this.#mono + Math.max(ms, 0), seq: this.#seq++, fn };
    this.#timers.add(entry);
    return { cancel: () => void this.#timers.delete(entry) };
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  /** Moves time on, running due timers in order and letting promises settle between them. */
  async advance(ms: number): Promise<void> {
    const end = this.#mono + ms;
    for (;;) {
      await settle();
      const next = this.#earliest(end);
      if (next === undefined) break;
      this.#moveTo(next.at);
      this.#timers.delete(next);
      next.fn();
    }
    this.#moveTo(end);
    await settle();
  }

  /** Steps the wall clock without letting monotonic time pass: what NTP or an operator does. */
  jumpWall(ms: number): void {
    this.#now += ms;
  }

  #earliest(end: number): Pending | undefined {
    let best: Pending | undefined;
    for (const t of this.#timers) {
      if (t.at <= end && (best === undefined || t.at < best.at || (t.at === best.at && t.seq < best.seq))) best = t;
    }
    return best;
  }

  #moveTo(mono: number): void {
    this.#now += mono - this.#mono;
    this.#mono = mono;
  }
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 3; i++) await nextTurn();
};
