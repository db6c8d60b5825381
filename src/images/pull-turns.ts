// Whose pull is next when only so many may run at once. Serial pulls go strictly in order. Of parallel ones a registry
// that has none under way comes first, then what is small, so that one slow registry or one large image does not hold up
// the rest; whoever has waited long enough is next whatever its size.
import type { Clock, Timer } from '../lib/clock.ts';
import { WaitingLine } from '../lib/waiting-line.ts';

export type PullTurn = {
  readonly registry: string;
  /** As far as it can be guessed. */
  readonly sizeBytes: number | undefined;
};

export type PullTurnsOptions = {
  /** Pulls at once. */
  readonly atOnce: number;
  /** One after the other in the order of asking, whatever the registry. */
  readonly inOrder: boolean;
};

export type WaitingTurn = PullTurn & { readonly sinceMs: number };
export type RunningTurn = { readonly registry: string; readonly sinceMs: number };

/** Nobody waits longer than this for smaller ones. */
const OVERTAKEN_MS = 60_000;
/** A pull that takes longer no longer keeps another registry's from running: it waits for its network, not for us. */
const SLOW_MS = 30_000;

export class PullTurns {
  readonly #clock: Clock;
  readonly #o: PullTurnsOptions;
  readonly #line = new WaitingLine<WaitingTurn>();
  readonly #running = new Map<WaitingTurn, RunningTurn>();
  #timer: Timer | undefined;

  constructor(clock: Clock, options: PullTurnsOptions) {
    this.#clock = clock;
    this.#o = options;
  }

  get waiting(): number {
    return this.#line.length;
  }

  async run<T>(turn: PullTurn, signal: AbortSignal, pull: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const mine: WaitingTurn = { ...turn, sinceMs: this.#clock.monotonic() };
    const entered = this.#line.wait(signal, this.#line.newPlace(), mine);
    this.#startNext();
    await entered;
    try {
      return await pull();
    } finally {
      this.#running.delete(mine);
      this.#startNext();
    }
  }

  #startNext(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (;;) {
      const { waiting } = this.#line;
      const at = nextTurn(waiting, [...this.#running.values()], this.#o, now);
      const next = at === undefined ? undefined : waiting[at];
      if (next === undefined) break;
      this.#running.set(next, { registry: next.registry, sinceMs: now });
      this.#line.letIn(at);
    }
    if (this.waiting > 0 && !this.#o.inOrder) this.#lookAgain(now);
  }

  /** When the oldest pull under way becomes a slow one. */
  #lookAgain(now: number): void {
    const soonest = Math.min(...[...this.#running.values()].map((r) => r.sinceMs + SLOW_MS).filter((at) => at > now));
    if (soonest !== Infinity) this.#timer = this.#clock.after(soonest - now, () => this.#startNext());
  }
}

/** The place in the queue of who may start now; undefined for nobody. */
export function nextTurn(
  waiting: readonly WaitingTurn[],
  running: readonly RunningTurn[],
  options: PullTurnsOptions,
  now: number,
): number | undefined {
  if (waiting.length === 0) return undefined;
  if (options.inOrder) return running.length < options.atOnce ? 0 : undefined;
  const places = waiting.map((_, at) => at).filter((at) => mayStart(waiting[at], running, options.atOnce, now));
  const under = (at: number): number => running.filter((r) => r.registry === waiting[at]?.registry).length;
  const overdue = (at: number): boolean => now - (waiting[at]?.sinceMs ?? now) >= OVERTAKEN_MS;
  const size = (at: number): number => waiting[at]?.sizeBytes ?? Infinity;
  return places.sort(
    (a, b) => Number(overdue(b)) - Number(overdue(a)) || under(a) - under(b) || compare(size(a), size(b)) || a - b,
  )[0];
}

const compare = (a: number, b: number): number => (a === b ? 0 : a < b ? -1 : 1);

/** Slow pulls of other registries do not count, but no more than twice the bound run in all. */
function mayStart(
  turn: WaitingTurn | undefined,
  running: readonly RunningTurn[],
  atOnce: number,
  now: number,
): boolean {
  if (turn === undefined || running.length >= 2 * atOnce) return false;
  const counted = running.filter((r) => r.registry === turn.registry || now - r.sinceMs < SLOW_MS);
  return counted.length < atOnce;
}
