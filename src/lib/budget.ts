// Counts the bytes of what is built from input that others chose. `take` runs before the bytes are made: V8 answers a failed
// allocation by ending the process, not by an exception.
import { KubeletError } from './errors.ts';

/** Counted for every entry on top of its bytes, so that a million empty ones are not free. */
export const ENTRY_BYTES = 64;

const MIB = 1024 * 1024;

export class Budget {
  readonly #what: string;
  readonly #limit: number;
  #taken = 0;

  /** `what` is the subject of the error: `environment, command and arguments`. */
  constructor(what: string, limit: number) {
    this.#what = what;
    this.#limit = limit;
  }

  /** Throws when the limit is passed. `field` names what would have passed it. */
  take(bytes: number, field: string): void {
    this.#taken += bytes;
    if (this.#taken > this.#limit) throw overBudget(this.#what, this.#limit, field);
  }
}

const FIELD_CHARACTERS = 128;

export function overBudget(what: string, limit: number, field: string): KubeletError {
  const shown = field.length > FIELD_CHARACTERS ? `${field.slice(0, FIELD_CHARACTERS)}…` : field;
  return new KubeletError('invalid', `${what} are larger than ${limit / MIB} MiB together (reached at ${shown})`);
}
