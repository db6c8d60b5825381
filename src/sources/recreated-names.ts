// Names in a watched directory that were removed and created again. The watch says `rename` for each of the two, and once
// for a file that is moved over another: only the former is a pod that has gone and come back. Nor has one gone that was not
// known before the first of the two.

/** Longer apart than this, a look at the directory in between has seen that the file was gone. */
const RECREATED_MS = 200;

export class RecreatedNames {
  readonly #lastAt = new Map<string, number>();
  #names = new Set<string>();

  renamed(name: string, now: number, isKnown: boolean): void {
    for (const [other, at] of this.#lastAt) if (now - at > RECREATED_MS) this.#lastAt.delete(other);
    if (this.#lastAt.delete(name)) this.#names.add(name);
    else if (isKnown) this.#lastAt.set(name, now);
  }

  take(): ReadonlySet<string> {
    const taken = this.#names;
    this.#names = new Set();
    return taken;
  }
}
