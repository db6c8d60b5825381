// What a reflector knows: objects by UID, with an index by name. Applying an event is pure bookkeeping; duplicates, late
// and reordered events leave it unchanged, so that it only ever moves forward.
import type { KubeObject } from '../core/meta.ts';
import { Lru } from '../lib/lru.ts';

/** `before` absent: new. `after` absent: gone. */
export type Change<T> = { readonly uid: string; readonly before?: T; readonly after?: T };

/** Deleted UIDs never come back, so late events about them can be told from new objects. */
const TOMBSTONES = 2048;

export class ObjectStore<T extends KubeObject> {
  readonly #byUid = new Map<string, T>();
  readonly #uidByName = new Map<string, string>();
  readonly #gone = new Lru<string, true>(TOMBSTONES);

  get(uid: string): T | undefined {
    return this.#byUid.get(uid);
  }

  byName(namespace: string | undefined, name: string): T | undefined {
    const uid = this.#uidByName.get(`${namespace ?? ''}/${name}`);
    return uid === undefined ? undefined : this.#byUid.get(uid);
  }

  values(): IterableIterator<T> {
    return this.#byUid.values();
  }

  get size(): number {
    return this.#byUid.size;
  }

  /** An ADDED or MODIFIED object. The same name under a new UID is a delete and an add. */
  set(object: T): readonly Change<T>[] {
    const uid = object.metadata.uid ?? '';
    if (this.#gone.get(uid) === true) return [];
    const before = this.#byUid.get(uid);
    if (before !== undefined && !isNewer(object, before)) return [];
    const namesake = this.#uidByName.get(nameKey(object));
    const changes: Change<T>[] = [];
    if (namesake !== undefined && namesake !== uid) {
      const other = this.#byUid.get(namesake);
      if (other !== undefined && !isNewer(object, other)) return [];
      this.#gone.set(namesake, true);
      changes.push(...this.#remove(namesake));
    }
    this.#byUid.set(uid, object);
    this.#uidByName.set(nameKey(object), uid);
    changes.push(before === undefined ? { uid, after: object } : { uid, before, after: object });
    return changes;
  }

  delete(object: T): readonly Change<T>[] {
    const uid = object.metadata.uid ?? '';
    this.#gone.set(uid, true);
    return this.#remove(uid);
  }

  /**
   * The whole truth after a list: whatever it lacks is gone, whatever it has is there. What it lacks may come back by an
   * event: events after a list are newer than the list, and a list can have been made by a server that lags behind.
   */
  replace(objects: readonly T[]): readonly Change<T>[] {
    const listed = new Set(objects.map((o) => o.metadata.uid ?? ''));
    const changes: Change<T>[] = [];
    for (const uid of this.#byUid.keys()) if (!listed.has(uid)) changes.push(...this.#remove(uid));
    for (const object of objects) {
      const uid = object.metadata.uid ?? '';
      this.#gone.delete(uid);
      const before = this.#byUid.get(uid);
      if (before !== undefined && before.metadata.resourceVersion === object.metadata.resourceVersion) continue;
      this.#byUid.set(uid, object);
      this.#uidByName.set(nameKey(object), uid);
      changes.push(before === undefined ? { uid, after: object } : { uid, before, after: object });
    }
    return changes;
  }

  #remove(uid: string): readonly Change<T>[] {
    const before = this.#byUid.get(uid);
    if (before === undefined) return [];
    this.#byUid.delete(uid);
    if (this.#uidByName.get(nameKey(before)) === uid) this.#uidByName.delete(nameKey(before));
    return [{ uid, before }];
  }
}

const nameKey = (object: KubeObject): string => `${object.metadata.namespace ?? ''}/${object.metadata.name}`;

const isNewer = (a: KubeObject, b: KubeObject): boolean =>
  compareVersions(a.metadata.resourceVersion ?? '', b.metadata.resourceVersion ?? '') > 0;

/** Resource versions are decimal numbers that grow. One that is none counts as newer: better applied twice than lost. */
export function compareVersions(a: string, b: string): number {
  if (a === b) return 0;
  if (!/^\d+$/.test(a) || !/^\d+$/.test(b)) return 1;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}
