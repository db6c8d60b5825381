// Child processes that SIGKILL does not end. A call into a file system whose server took the request and does not answer
// cannot be interrupted, nor can one into a disk that hangs. While such a child is there, its question is answered without
// another child, and all such children together have a bound.
import { formatDurationMs } from '../../core/duration.ts';
import { abortable } from '../../lib/abort.ts';
import { systemClock } from '../../lib/clock.ts';
import { KubeletError } from '../../lib/errors.ts';
import { silentLogger, type Logger } from '../../lib/logger.ts';

/** A child process after SIGKILL. */
export type KilledChild = {
  readonly pid?: number | undefined;
  readonly exitCode: number | null;
  readonly signalCode: string | null;
  once(event: 'exit', listener: () => void): unknown;
};

export type Question = {
  /** Equal questions have equal texts. */
  readonly about: string;
  /** Memory that a hung child keeps, in units of a small tool's. */
  readonly cost?: number;
  /** Is asked although the bound is reached: a step that leads away from the file system. */
  readonly isWayOut?: boolean;
};

/** Cost of a child with a heap of its own. */
export const LARGE_CHILD = 8;
/** 64 small tools, or eight children of Node with some 300 MiB. */
const MAX_COST = 64;
/** Time for a killed child to end. An interruptible one needs milliseconds. */
const END_MS = 1000;

type Killed = {
  readonly about: string;
  readonly cost: number;
  readonly pid: number;
  /** Settles when the child ends, or hangs for certain. */
  readonly decided: Promise<void>;
  isHung: boolean;
};

/** A question that gets no child. */
export class NotAsked extends KubeletError {
  readonly predicate: string;

  constructor(about: string, predicate: string) {
    super('deadline', `${about} ${predicate}`);
    this.predicate = predicate;
  }
}

/** What to say of `subject` after a question about it failed with a `deadline` fault. */
export const noAnswer = (subject: string, timeoutMs: number, cause: unknown): KubeletError => {
  const predicate =
    cause instanceof NotAsked ? cause.predicate : `did not answer within ${formatDurationMs(timeoutMs)}`;
  return new KubeletError('deadline', `${subject} ${predicate}`, { cause });
};

/**
 * INVARIANTS:
 * - A killed child is listed until it ends. It counts as hung a second after the kill.
 * - No child starts whose question a hung child has.
 * - No child starts whose cost, added to those of all hung children, exceeds the bound, unless it is a way out.
 */
class HungChildren {
  readonly #killed = new Set<Killed>();
  #log: Logger = silentLogger;
  #isFull = false;

  /** Where it says that children hang, and that they have ended. */
  logTo(log: Logger): void {
    this.#log = log;
  }

  get count(): number {
    return this.#hung().length;
  }

  /** Rejects with `NotAsked`. A child that was killed a moment ago with the same question is waited for. */
  async admit({ about, cost = 1, isWayOut = false }: Question, signal: AbortSignal): Promise<void> {
    for (let earlier = this.#of(about); earlier !== undefined; earlier = this.#of(about)) {
      if (earlier.isHung)
        throw new NotAsked(
          about,
          `still does not answer: process ${earlier.pid}, which waits for it, cannot be killed`,
        );
      await abortable(signal, earlier.decided);
    }
    const hung = this.#hung();
    if (isWayOut || hung.reduce((sum, one) => sum + one.cost, cost) <= MAX_COST) return;
    if (!this.#isFull) this.#log.error('too many child processes hang, no more are started', { count: hung.length });
    this.#isFull = true;
    throw new NotAsked(about, `is not looked at: ${hung.length} processes wait for file systems that do not answer`);
  }

  /** A child got SIGKILL. */
  killed(child: KilledChild, { about, cost = 1 }: Question): void {
    const { pid } = child;
    if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const { promise: decided, resolve } = Promise.withResolvers<void>();
    const one: Killed = { about, cost, pid, decided, isHung: false };
    this.#killed.add(one);
    const timer = systemClock.after(END_MS, () => {
      one.isHung = true;
      this.#log.warn('a child process does not end after SIGKILL', { pid, about, count: this.count });
      resolve();
    });
    child.once('exit', () => {
      timer.cancel();
      this.#killed.delete(one);
      this.#isFull = false;
      if (one.isHung) this.#log.info('a child process that hung has ended', { pid, about, count: this.count });
      resolve();
    });
  }

  #of(about: string): Killed | undefined {
    const same = [...this.#killed].filter((one) => one.about === about);
    return same.find((one) => one.isHung) ?? same[0];
  }

  #hung(): readonly Killed[] {
    return [...this.#killed].filter((one) => one.isHung);
  }
}

/** Of this process. */
export const hungChildren = new HungChildren();
