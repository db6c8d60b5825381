// The world: every object in memory, every change in SQLite before it is acknowledged. One revision counter orders all
// changes, as etcd's does. Single-threaded on purpose: a read-modify-write without an await cannot be interleaved.
// WAL with synchronous=NORMAL: a killed process loses nothing, a power cut may lose the last moments.
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { KubeletError } from '../../lib/errors.ts';
import { objectKey, type ApiObject } from './objects.ts';

export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

export class StoredObject {
  readonly object: Readonly<ApiObject>;
  readonly revision: number;
  #text: string | undefined;

  constructor(object: ApiObject, revision: number, text?: string) {
    this.object = object;
    this.revision = revision;
    this.#text = text;
  }

  get key(): string {
    return objectKey(this.object);
  }

  /** Serialised once, shared by storage, replies, lists and all watchers. */
  get text(): string {
    return (this.#text ??= JSON.stringify(this.object));
  }
}

export type Change = {
  readonly type: ChangeType;
  readonly resource: string;
  readonly revision: number;
  readonly now: StoredObject;
  /** What was there before; absent for ADDED. */
  readonly before: StoredObject | undefined;
};

type Collection = { readonly items: Map<string, StoredObject>; sorted: StoredObject[] | undefined };

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS objects (
    resource TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (resource, key)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
`;

export class ObjectStore {
  readonly #db: DatabaseSync;
  readonly #collections = new Map<string, Collection>();
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #setFact: StatementSync;
  #revision = 0;

  /** `path` is a file, or `:memory:`. */
  constructor(path: string) {
    this.#db = new DatabaseSync(path);
    this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000;');
    this.#db.exec(SCHEMA);
    this.#put = this.#db.prepare('INSERT OR REPLACE INTO objects (resource, key, revision, body) VALUES (?, ?, ?, ?)');
    this.#remove = this.#db.prepare('DELETE FROM objects WHERE resource = ? AND key = ?');
    this.#setFact = this.#db.prepare('INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)');
    this.#load();
  }

  #load(): void {
    for (const row of this.#db.prepare('SELECT resource, key, revision, body FROM objects').iterate()) {
      const { resource, key, revision, body } = row as {
        resource: string;
        key: string;
        revision: number;
        body: string;
      };
      this.#collection(resource).items.set(key, new StoredObject(JSON.parse(body) as ApiObject, revision, body));
      this.#revision = Math.max(this.#revision, revision);
    }
    this.#revision = Math.max(this.#revision, Number(this.fact('revision') ?? '1'));
  }

  get revision(): number {
    return this.#revision;
  }

  /** Called for every change, in order, after it is durable. Must not throw. */
  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get(resource: string, key: string): StoredObject | undefined {
    return this.#collections.get(resource)?.items.get(key);
  }

  /** Sorted by key; with `namespace` only that namespace's. The array is shared and must not be changed. */
  list(resource: string, namespace?: string): readonly StoredObject[] {
    const collection = this.#collections.get(resource);
    if (collection === undefined) return [];
    collection.sorted ??= [...collection.items.entries()]
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([, item]) => item);
    if (namespace === undefined || namespace === '') return collection.sorted;
    return collection.sorted.filter((item) => item.object.metadata.namespace === namespace);
  }

  resources(): readonly string[] {
    return [...this.#collections.keys()];
  }

  /** Creates or replaces. `draft` belongs to the store from here on; it gets its resource version here. */
  put(resource: string, draft: ApiObject): StoredObject {
    const revision = this.#revision + 1;
    draft.metadata.resourceVersion = String(revision);
    const stored = new StoredObject(draft, revision);
    const collection = this.#collection(resource);
    const before = collection.items.get(stored.key);
    this.#put.run(resource, stored.key, revision, stored.text);
    this.#revision = revision;
    collection.items.set(stored.key, stored);
    collection.sorted = before === undefined ? undefined : replaced(collection.sorted, before, stored);
    this.#tell({ type: before === undefined ? 'ADDED' : 'MODIFIED', resource, revision, now: stored, before });
    return stored;
  }

  /** Removes; what watchers get is the last state with the revision of the removal. */
  remove(resource: string, key: string): StoredObject {
    const collection = this.#collection(resource);
    const before = collection.items.get(key);
    if (before === undefined) throw new KubeletError('notFound', `no ${resource} ${key} to remove`);
    const revision = this.#revision + 1;
    this.#db.exec('BEGIN');
    try {
      this.#remove.run(resource, key);
      this.#setFact.run('revision', String(revision));
      this.#db.exec('COMMIT');
    } catch (err) {
      this.#db.exec('ROLLBACK');
      throw err;
    }
    this.#revision = revision;
    collection.items.delete(key);
    collection.sorted = undefined;
    const last = { ...before.object, metadata: { ...before.object.metadata, resourceVersion: String(revision) } };
    const stored = new StoredObject(last, revision);
    this.#tell({ type: 'DELETED', resource, revision, now: stored, before });
    return stored;
  }

  fact(name: string): string | undefined {
    const row = this.#db.prepare('SELECT value FROM facts WHERE name = ?').get(name) as { value: string } | undefined;
    return row?.value;
  }

  setFact(name: string, value: string): void {
    this.#setFact.run(name, value);
  }

  close(): void {
    this.#listeners.clear();
    this.#db.close();
  }

  #collection(resource: string): Collection {
    let found = this.#collections.get(resource);
    if (found === undefined) {
      found = { items: new Map(), sorted: undefined };
      this.#collections.set(resource, found);
    }
    return found;
  }

  #tell(change: Change): void {
    for (const listener of this.#listeners) listener(change);
  }
}

/** Keeps the sorted array when only one element changed. Lists handed out earlier keep the old array. */
function replaced(
  sorted: StoredObject[] | undefined,
  before: StoredObject,
  now: StoredObject,
): StoredObject[] | undefined {
  if (sorted === undefined) return undefined;
  const index = sorted.indexOf(before);
  return index < 0 ? undefined : sorted.with(index, now);
}
