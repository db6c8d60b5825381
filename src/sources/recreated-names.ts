// Names in a watched directory that were removed and created again. The watch says `rename` for each of the two, and once
// for a file that is moved over another: only the former is a pod that has gone and come back.

/** Longer apart than this, a look at the directory in between has seen that the file was gone. */
const RECREATED_MS = 200;

export class RecreatedNames {
  readonly #lastAt = new Map<string, number>();
  #names = new Set<string>();

  renamed(name: string, now: number): void {
    for (const [other, at] of this.#lastAt) if (now - at > RECREATED_MS) this.#lastAt.delete(other);
    if (!this.#lastAt.has(name)) this.#lastAt.set(name, now);
    else {
      this.#lastAt.delete(name);
      this.#names.add(name);
    }
  }

  take(): ReadonlySet<string> {
    const taken = this.#names;
    this.#names = new Set();
    return taken;
  }
}
