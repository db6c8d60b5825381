// The only owner of wall time, monotonic time, timers, turns of the event loop and randomness that is no secret. Everything else receives a Clock,
// so tests can drive time by hand and no part depends on the machine's clock behaving.

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall time in milliseconds since the epoch. For stamps that people and peers read, never for durations. */
  now(): number;
  /** Wall time in nanoseconds since the epoch. */
  nowNanos(): bigint;
  /** Monotonic milliseconds since the process started: durations, deadlines and back-offs survive clock jumps with this one. */
  monotonic(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** Runs `fn` once after `ms`. `ms` beyond 2^31 is clamped, below 0 counts as 0. */
  after(ms: number, fn: () => void): Timer;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** Wall time at which the process started. */
export const processStartMs = (clock: Pick<Clock, 'now' | 'monotonic'>): number =>
  Math.floor(clock.now() - clock.monotonic());

/** Bytes for names that must not collide. Never for secrets: those are the crypto module's. */
export const randomBytes = (clock: Pick<Clock, 'random'>, count: number): Buffer =>
  Buffer.from(Array.from({ length: count }, () => Math.floor(clock.random() * 256)));

/** Lets everything that waits for its turn of the event loop go first. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

const MAX_TIMER_MS = 2 ** 31 - 1;
const NANOS_PER_MS = 1_000_000n;

/**
 * The wall clock's millisecond with the monotonic clock's fraction: stamps made in the same millisecond stay apart, and a
 * step of the wall clock is followed. `performance.timeOrigin` would not: it is the wall time at which the process started.
 */
const wallNanos = (wallMs: number, monotonicMs: number): bigint =>
  BigInt(wallMs) * NANOS_PER_MS + BigInt(Math.floor((monotonicMs % 1) * 1e6));

/** The two clocks do not begin their milliseconds at the same moment; stamps of one millisecond are in order all the same. */
export class WallStamps {
  #wallMs = 0;
  #last = 0n;

  at(wallMs: number, monotonicMs: number): bigint {
    const stamp = wallNanos(wallMs, monotonicMs);
    if (wallMs !== this.#wallMs || stamp > this.#last) this.#last = stamp;
    this.#wallMs = wallMs;
    return this.#last;
  }
}

const stamps = new WallStamps();

export const systemClock: Clock = {
  now: () => Date.now(),
  nowNanos: () => stamps.at(Date.now(), performance.now()),
  monotonic: () => performance.now(),
  random: () => Math.random(),
  after(ms, fn) {
    const handle = setTimeout(fn, Math.min(Math.max(ms, 0), MAX_TIMER_MS));
    return { cancel: () => clearTimeout(handle) };
  },
  sleep(ms, signal) {
    return sleepOn(this, ms, signal);
  },
};

/** `sleep` in terms of `after`, shared by every Clock. */
export function sleepOn(clock: Pick<Clock, 'after'>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = clock.after(ms, done);
    signal.addEventListener('abort', done, { once: true });
  });
}
