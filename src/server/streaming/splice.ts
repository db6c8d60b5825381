// Joins two connections byte for byte. The slower side sets the pace; an end on one side becomes an end on the other;
// a connection on which nothing moves for too long is closed.
import type { Duplex } from 'node:stream';
import type { Clock, Timer } from '../../lib/clock.ts';

export type SpliceOptions = { readonly clock: Clock; readonly idleMs: number };

const LINGER_MS = 10_000;

/** Resolves when both are closed. Both must have an error listener that destroys them, or get one here. */
export function splice(a: Duplex, b: Duplex, { clock, idleMs }: SpliceOptions, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let open = 2;
    const destroyBoth = (): void => {
      a.destroy();
      b.destroy();
    };
    let idle = new IdleTimer(clock, idleMs, destroyBoth);
    // Once a side is done the rest is given a short time: nobody should wait for hours for a peer that left.
    const hurry = (): void => {
      idle.stop();
      idle = new IdleTimer(clock, LINGER_MS, destroyBoth);
    };
    const closed = (other: Duplex) => (): void => {
      hurry();
      if (--open > 0) {
        // Nobody is left to read what the other side sends; what is on the way to it may still arrive.
        other.end(() => other.destroy());
        return;
      }
      idle.stop();
      signal.removeEventListener('abort', destroyBoth);
      resolve();
    };
    for (const [one, other] of [
      [a, b],
      [b, a],
    ] as const) {
      one.on('error', destroyBoth);
      one.once('end', hurry);
      if (one.closed) queueMicrotask(closed(other));
      else one.once('close', closed(other));
      one.on('data', () => idle.touch());
      one.pipe(other);
    }
    if (a.destroyed || b.destroyed || signal.aborted) destroyBoth();
    else signal.addEventListener('abort', destroyBoth, { once: true });
  });
}

/** Fires after `ms` without a touch. A touch costs one assignment, not a timer. */
export class IdleTimer {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #onIdle: () => void;
  #last: number;
  #timer: Timer | undefined;

  /** `ms` ≤ 0 means never. */
  constructor(clock: Clock, ms: number, onIdle: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#onIdle = onIdle;
    this.#last = clock.monotonic();
    if (ms > 0) this.#arm(ms);
  }

  touch(): void {
    this.#last = this.#clock.monotonic();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #arm(ms: number): void {
    this.#timer = this.#clock.after(ms, () => {
      const left = this.#last + this.#ms - this.#clock.monotonic();
      if (left > 0) this.#arm(left);
      else this.#onIdle();
    });
  }
}
