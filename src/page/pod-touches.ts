// Tells whoever looks that something about a pod changed. Costs nothing while nobody does.

export class PodTouches {
  readonly #listeners = new Set<(uid: string) => void>();

  touch(uid: string): void {
    for (const listener of this.#listeners) listener(uid);
  }

  onChange(listener: (uid: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
