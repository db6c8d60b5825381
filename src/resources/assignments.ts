// What a manager gave to whom: to containers, by pod and name, and to pods as a whole. Pure but for the call when something
// changed.

export type Entries<T> = ReadonlyMap<string, ReadonlyMap<string, T>>;

/** `pods`: given to a pod as a whole, from which its containers have theirs. */
export type Given<T> = { readonly entries: Entries<T>; readonly pods: ReadonlyMap<string, T> };

export class Assignments<T> implements Given<T> {
  readonly #onChange: () => void;
  readonly #entries: Map<string, Map<string, T>>;
  readonly #pods: Map<string, T>;

  constructor(onChange: () => void, { entries, pods }: Given<T>) {
    this.#onChange = onChange;
    this.#entries = new Map([...entries].map(([uid, containers]) => [uid, new Map(containers)]));
    this.#pods = new Map(pods);
  }

  get entries(): Entries<T> {
    return this.#entries;
  }

  get pods(): ReadonlyMap<string, T> {
    return this.#pods;
  }

  of(uid: string, container: string): T | undefined {
    return this.#entries.get(uid)?.get(container);
  }

  set(uid: string, container: string, given: T): void {
    const own = this.#entries.get(uid) ?? new Map<string, T>();
    own.set(container, given);
    this.#entries.set(uid, own);
    this.#onChange();
  }

  setPod(uid: string, given: T): void {
    this.#pods.set(uid, given);
    this.#onChange();
  }

  delete(uid: string, container: string): void {
    const own = this.#entries.get(uid);
    own?.delete(container);
    if (own?.size === 0) this.#entries.delete(uid);
    this.#onChange();
  }

  deletePod(uid: string): void {
    this.#pods.delete(uid);
    this.#entries.delete(uid);
    this.#onChange();
  }
}
