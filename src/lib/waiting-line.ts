// Those who wait for something, in the order of their places. Who no longer wants it leaves the line.

type Waiter = { readonly place: number; readonly enter: () => void };

export class WaitingLine {
  readonly #waiters: Waiter[] = [];
  #lastPlace = 0;

  get length(): number {
    return this.#waiters.length;
  }

  /** A place behind all that were given out. Who comes back to the line may use it again. */
  newPlace(): number {
    return ++this.#lastPlace;
  }

  /** Resolves when it is let in. */
  wait(signal: AbortSignal, place = this.newPlace()): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
      };
      const enter = (): void => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const waiter: Waiter = { place, enter };
      const behind = this.#waiters.findIndex((other) => other.place > place);
      this.#waiters.splice(behind === -1 ? this.#waiters.length : behind, 0, waiter);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** False when nobody waits. */
  letFirstIn(): boolean {
    const first = this.#waiters.shift();
    first?.enter();
    return first !== undefined;
  }
}
