// Random values from a seed that a test's name shows.
export const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 32));

/** How many cases are tried: `usual` in `npm test`. */
export const cases = (usual: number): number => Number(process.env['WIRE_CASES'] ?? usual);

export class Dice {
  #state: number;

  constructor(seed = SEED) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to 1. */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 up to, not including, `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  one<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  list<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.below(most + 1) }, make);
  }

  bytes(most: number): Buffer {
    return Buffer.from(this.list(most, () => this.below(256)));
  }
}
