// Tells when requests go out under another client certificate. What ended with the connections of the old one is no outage,
// and what was refused to it is worth asking again.

export class Renewal {
  readonly #listeners = new Set<() => void>();
  #count = 0;

  /** How often so far. */
  get count(): number {
    return this.#count;
  }

  renewed(): void {
    this.#count++;
    for (const listener of this.#listeners) listener();
  }

  /** Returns a function that ends the subscription. */
  onRenewed(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
