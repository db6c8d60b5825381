// One answer for everybody who asks at about the same time. The work goes on when one of them hangs up; it has its own
// deadline instead.
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';

export type SharedAnswerOptions = { readonly maxAgeMs: number; readonly deadlineMs: number };

type Answer<T> = { readonly value: Promise<T>; doneAt: number | undefined };

export class SharedAnswer<T> {
  readonly #clock: Clock;
  readonly #work: (signal: AbortSignal) => Promise<T>;
  readonly #o: SharedAnswerOptions;
  #current: Answer<T> | undefined;

  constructor(clock: Clock, work: (signal: AbortSignal) => Promise<T>, options: SharedAnswerOptions) {
    this.#clock = clock;
    this.#work = work;
    this.#o = options;
  }

  /** The next caller gets a new answer: what it is made of has changed. */
  forget(): void {
    this.#current = undefined;
  }

  /** A failure is shared by those who waited for it and then forgotten. */
  get(signal: AbortSignal): Promise<T> {
    const now = this.#clock.monotonic();
    const current = this.#current;
    if (current !== undefined && (current.doneAt === undefined || now - current.doneAt < this.#o.maxAgeMs))
      return abortable(signal, current.value);
    const fresh: Answer<T> = {
      value: withDeadline(this.#clock, new AbortController().signal, this.#o.deadlineMs, (own) =>
        abortable(own, this.#work(own)),
      ),
      doneAt: undefined,
    };
    this.#current = fresh;
    fresh.value.then(
      () => (fresh.doneAt = this.#clock.monotonic()),
      () => {
        if (this.#current === fresh) this.#current = undefined;
      },
    );
    return abortable(signal, fresh.value);
  }
}
