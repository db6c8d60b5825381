// Names in a watched directory that were removed and created again. The watch says `rename` for each of the two, and once
// for a file that is moved over another: only the former is a pod that has gone and come back. Nor has one gone that was not
// known before the first of the two. A file that is written beside and moved over the known one tells by its own name: it came
// a moment ago, and goes directly before the other is said to be renamed.

/** Longer apart than this, a look at the directory in between has seen that the file was gone. */
const RECREATED_MS = 200;

export class RecreatedNames {
  /** Known names that were renamed once: gone, or replaced from another directory. */
  readonly #lastAt = new Map<string, number>();
  /** Other names that came. */
  readonly #cameAt = new Map<string, number>();
  /** The other name that went, if the last event was that. */
  #went: string | undefined;
  #names = new Set<string>();

  renamed(name: string, now: number, isKnown: boolean): void {
    for (const times of [this.#lastAt, this.#cameAt])
      for (const [other, at] of times) if (now - at > RECREATED_MS) times.delete(other);
    const isReplaced = this.#went !== undefined && this.#went !== name;
    this.#went = undefined;
    if (this.#lastAt.delete(name)) this.#names.add(name);
    else if (isReplaced) return;
    else if (isKnown) this.#lastAt.set(name, now);
    else if (this.#cameAt.delete(name)) this.#went = name;
    else this.#cameAt.set(name, now);
  }

  /** Something else happened in the directory. */
  changed(): void {
    this.#went = undefined;
  }

  take(): ReadonlySet<string> {
    const taken = this.#names;
    this.#names = new Set();
    return taken;
  }
}
