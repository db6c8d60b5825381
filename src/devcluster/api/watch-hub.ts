// Who watches what. Keeps a window of past changes per store so that a watch can start in the past; older starts get a
// 410. A change is serialised once per form, whatever the number of watchers. Never blocks a writer: a watcher that does
// not read is closed and starts over.
import { gone } from './api-error.ts';
import type { ApiObject } from './objects.ts';
import type { Change, ObjectStore, StoredObject } from './store.ts';

/** How an object is shown to a client: plain, as table row, as metadata, in another API group. */
export interface Form {
  readonly name: string;
  render(object: StoredObject): string;
}

export interface WatchSink {
  /** False: the client is too slow and must be dropped. */
  write(line: string): boolean;
  end(): void;
}

export type WatchRequest = {
  readonly storage: string;
  readonly namespace: string | undefined;
  readonly matches: ((object: ApiObject) => boolean) | undefined;
  readonly form: Form;
};

type Watcher = WatchRequest & { readonly sink: WatchSink };
type Window = { changes: Recorded[]; start: number; compacted: number };

/** A change and the lines made of it so far, by type and form. */
class Recorded {
  readonly change: Change;
  readonly #lines = new Map<string, string>();

  constructor(change: Change) {
    this.change = change;
  }

  line(type: string, form: Form, object: StoredObject): string {
    const key = `${type} ${form.name}`;
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = eventLine(type, form.render(object));
      this.#lines.set(key, line);
    }
    return line;
  }
}

export const eventLine = (type: string, objectText: string): string => `{"type":"${type}","object":${objectText}}\n`;

export class WatchHub {
  readonly #store: ObjectStore;
  readonly #windowSize: number;
  readonly #windows = new Map<string, Window>();
  readonly #watchers = new Map<string, Set<Watcher>>();
  readonly #bornAt: number;

  constructor(store: ObjectStore, options: { windowSize: number }) {
    this.#store = store;
    this.#windowSize = options.windowSize;
    this.#bornAt = store.revision;
  }

  /** Begins to record; returns the way to end it. */
  attach(): () => void {
    return this.#store.onChange((change) => this.#record(change));
  }

  get watcherCount(): number {
    let count = 0;
    for (const set of this.#watchers.values()) count += set.size;
    return count;
  }

  /** Sends what happened after `since` and then everything that happens. Throws 410 when `since` is too old. */
  watch(request: WatchRequest, sink: WatchSink, since: number): () => void {
    const past = this.#changesSince(request.storage, since);
    const watcher: Watcher = { ...request, sink };
    let set = this.#watchers.get(request.storage);
    if (set === undefined) this.#watchers.set(request.storage, (set = new Set()));
    for (const recorded of past) if (!deliver(watcher, recorded)) return () => undefined;
    set.add(watcher);
    return () => set.delete(watcher);
  }

  closeAll(): void {
    for (const set of this.#watchers.values()) for (const watcher of set) watcher.sink.end();
    this.#watchers.clear();
  }

  /** Forgets the past of every store, as a compaction of etcd does. */
  compact(): void {
    for (const window of this.#windows.values()) {
      window.compacted = this.#store.revision;
      window.changes = [];
      window.start = 0;
    }
  }

  #changesSince(storage: string, since: number): readonly Recorded[] {
    const window = this.#windows.get(storage);
    const oldest = Math.max(window?.compacted ?? 0, this.#bornAt);
    if (since < oldest) throw gone(`too old resource version: ${since} (${oldest})`);
    if (since > this.#store.revision)
      throw gone(`too large resource version: ${since}, current: ${this.#store.revision}`);
    if (window === undefined) return [];
    const { changes, start } = window;
    let first = changes.length;
    while (first > start && (changes[first - 1]?.change.revision ?? 0) > since) first--;
    return changes.slice(first);
  }

  #record(change: Change): void {
    let window = this.#windows.get(change.resource);
    if (window === undefined) {
      window = { changes: [], start: 0, compacted: this.#bornAt };
      this.#windows.set(change.resource, window);
    }
    const recorded = new Recorded(change);
    window.changes.push(recorded);
    if (window.changes.length - window.start > this.#windowSize) {
      window.compacted = window.changes[window.start]?.change.revision ?? window.compacted;
      window.start++;
      if (window.start > this.#windowSize) {
        window.changes = window.changes.slice(window.start);
        window.start = 0;
      }
    }
    const watchers = this.#watchers.get(change.resource);
    if (watchers === undefined) return;
    for (const watcher of watchers) if (!deliver(watcher, recorded)) watchers.delete(watcher);
  }
}

/** What a change means to someone who only sees some objects: coming into sight is ADDED, leaving it is DELETED. */
function deliver(watcher: Watcher, recorded: Recorded): boolean {
  const { change } = recorded;
  const { matches, namespace } = watcher;
  if (namespace !== undefined && change.now.object.metadata.namespace !== namespace) return true;
  const sees = (stored: StoredObject | undefined): boolean =>
    stored !== undefined && (matches === undefined || matches(stored.object as ApiObject));
  const saw = sees(change.before);
  const seesNow = change.type !== 'DELETED' && sees(change.now);
  if (!saw && !seesNow) return true;
  const type = !saw ? 'ADDED' : !seesNow ? 'DELETED' : 'MODIFIED';
  const ok = watcher.sink.write(recorded.line(type, watcher.form, change.now));
  if (!ok) watcher.sink.end();
  return ok;
}
