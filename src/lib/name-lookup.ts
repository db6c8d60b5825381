// Addresses of names that somebody else chose, as the authors of pods do. The system's resolver has few threads, and keeps one
// for as long as a server leaves it without an answer. So these names are searched without it. Those that only it may know are
// looked up one at a time, each once for all who ask, and not at all when nobody waits any more: names of the agent's own
// never stand behind them.
import { lookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import { abortable } from './abort.ts';
import { searchHere, type Addresses } from './name-search.ts';
import { Semaphore } from './semaphore.ts';

export type NameLookupDeps = {
  /** Without a thread, side by side; undefined for a name that is not known this way. */
  readonly search: (name: string, signal: AbortSignal) => Promise<Addresses | undefined>;
  readonly system: (name: string) => Promise<Addresses>;
};
type Question = {
  readonly answer: Promise<Addresses>;
  readonly stop: AbortController;
  begun: boolean;
  waiting: number;
};

const HERE: NameLookupDeps = { search: searchHere, system: (name) => lookup(name, { all: true }) };

export class NameLookup {
  readonly #deps: NameLookupDeps;
  readonly #turns = new Semaphore(1);
  readonly #questions = new Map<string, Question>();

  constructor(deps: NameLookupDeps = HERE) {
    this.#deps = deps;
  }

  /** For one connection, which waits until `signal` aborts. */
  until(signal: AbortSignal): LookupFunction {
    const ask = callbackify((name: string) => this.#addressesOf(name, signal));
    return (name, { all }, callback) =>
      ask(name, (err, found) => {
        const [first] = err === null ? found : [];
        if (first === undefined) callback(err ?? new Error(`${name} has no address`), []);
        else if (all === true) callback(null, [...found]);
        else callback(null, first.address, first.family);
      });
  }

  async #addressesOf(name: string, signal: AbortSignal): Promise<Addresses> {
    const found = await abortable(signal, this.#deps.search(name, signal));
    return found ?? this.#inTurn(name, signal);
  }

  async #inTurn(name: string, signal: AbortSignal): Promise<Addresses> {
    const question = this.#questions.get(name) ?? this.#ask(name);
    question.waiting++;
    try {
      return await abortable(signal, question.answer);
    } finally {
      // Once it is asked the answer has to be waited for. It is then that of whoever asks next, too.
      if (--question.waiting === 0 && !question.begun) {
        this.#questions.delete(name);
        question.stop.abort();
      }
    }
  }

  #ask(name: string): Question {
    const stop = new AbortController();
    const progress = { begun: false, waiting: 0 };
    const answer = this.#turns.run(stop.signal, () => {
      progress.begun = true;
      return this.#deps.system(name);
    });
    const question: Question = Object.assign(progress, { answer, stop });
    this.#questions.set(name, question);
    const forget = (): void => {
      if (this.#questions.get(name) === question) this.#questions.delete(name);
    };
    answer.then(forget, forget);
    return question;
  }
}
