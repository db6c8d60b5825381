// Those who wait for something, in the order of their places, and what is known of each. Who no longer wants it leaves the
// line.

type Waiter<T> = { readonly place: number; readonly about: T; readonly enter: () => void };

export class WaitingLine<T = void> {
  readonly #waiters: Waiter<T>[] = [];
  #lastPlace = 0;

  get length(): number {
    return this.#waiters.length;
  }

  /** Of each what it said of itself, the first first. */
  get waiting(): readonly T[] {
    return this.#waiters.map(({ about }) => about);
  }

  /** A place behind all that were given out. Who comes back to the line may use it again. */
  newPlace(): number {
    return ++this.#lastPlace;
  }

  /** Resolves when it is let in. */
  wait(signal: AbortSignal, place: number, about: T): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
      };
      const enter = (): void => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const waiter: Waiter<T> = { place, about, enter };
      const behind = this.#waiters.findIndex((other) => other.place > place);
      this.#waiters.splice(behind === -1 ? this.#waiters.length : behind, 0, waiter);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Whoever waits at this place; false when nobody does. */
  letInPlace(place: number): boolean {
    const at = this.#waiters.findIndex((waiter) => waiter.place === place);
    return at >= 0 && this.letIn(at);
  }

  /** False when nobody waits there. */
  letIn(at = 0): boolean {
    const [waiter] = this.#waiters.splice(at, 1);
    waiter?.enter();
    return waiter !== undefined;
  }
}
