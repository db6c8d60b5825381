// Secrets or ConfigMaps that pods on this node use. With `Watch` each one is followed while a registered pod refers to
// it, and a change is told at once with the pods it concerns; `Cache` reads with a time to live; `Get` reads every time.
import type { KubeObject } from '../core/meta.ts';
import { uidOf, namespaceOf, type Pod } from '../core/pod.ts';
import type { PodUid } from '../core/ids.ts';
import { childScope, withDeadline, type Scope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { isUnreachable, OFFLINE_AFTER_MS } from './api-error.ts';
import { Reflector, type ListWatchClient } from './reflector.ts';
import type { Resource, Where } from './resources.ts';

export type ChangeDetection = 'Watch' | 'Cache' | 'Get';

export interface ObjectClient extends ListWatchClient {
  get<T>(resource: Resource<T>, where: Where & { readonly name: string }, signal: AbortSignal): Promise<T>;
}

/** What was known before the API server went away, be it before a reboot. Keys are `namespace/name`. */
export interface LastKnown<T> {
  get(key: string): T | undefined;
  set(key: string, object: T): void;
  delete(key: string): void;
}

export type ObjectCacheDeps<T> = {
  client: ObjectClient;
  clock: Clock;
  log: Logger;
  /** Told of every object that was read; asked while the API server cannot be reached. */
  lastKnown?: LastKnown<T>;
  /**
   * An object is another than somebody was told: it changed, appeared or went away. `pods` are those registered with it.
   * What a new watch begins with is no change for those who have waited for it.
   */
  onChange: (change: { namespace: string; name: string; object: T | undefined; pods: readonly PodUid[] }) => void;
};

export type ObjectCacheOptions<T> = {
  name: string;
  resource: Resource<T>;
  strategy: ChangeDetection;
  /** Names of the objects a pod refers to. */
  namesOf: (pod: Pod) => ReadonlySet<string>;
};

const WATCH_SECONDS = [1800, 3600] as const;
/** After an outage a node with hundreds of objects comes back to them one after the other; what it knows stays good. */
const SPREAD_MS = 30_000;
const SYNC_WAIT_MS = 1000;
const TTL_MS = 60_000;

type Immutable = KubeObject & { readonly immutable?: boolean };
type Entry<T extends Immutable> = {
  readonly namespace: string;
  readonly name: string;
  readonly pods: Set<PodUid>;
  reflector?: Reflector<T>;
  scope?: Scope;
  /** An immutable object, kept for good, or a cached read. */
  kept?: { object: T; until: number };
  /** Before the watch stands: the version that callers were told, `various` when not all of them or none at all. */
  told?: string;
  /** The watch has shown something. */
  begun?: boolean;
};

/** No version of an object: a caller went away without one, or with another than the next. */
const VARIOUS = 'various';

function noteTold(entry: { told?: string }, version: string | undefined): void {
  const isSame = entry.told === undefined || entry.told === version;
  entry.told = isSame && version !== undefined ? version : VARIOUS;
}

export class ObjectCache<T extends Immutable> implements Runnable {
  readonly name: string;
  readonly #deps: ObjectCacheDeps<T>;
  readonly #o: ObjectCacheOptions<T>;
  readonly #entries = new Map<string, Entry<T>>();
  readonly #keysOfPod = new Map<PodUid, ReadonlySet<string>>();
  /** As last told of: nothing in one that was told of already is new. */
  readonly #registered = new Map<PodUid, Pod>();
  readonly #running = new Set<Promise<void>>();
  #signal: AbortSignal | undefined;

  constructor(deps: ObjectCacheDeps<T>, options: ObjectCacheOptions<T>) {
    this.#deps = deps;
    this.#o = options;
    this.name = options.name;
  }

  /** Called at every sync of a pod; what it no longer refers to is let go. */
  register(pod: Pod): void {
    const uid = uidOf(pod);
    if (this.#registered.get(uid) === pod) return;
    const namespace = namespaceOf(pod);
    const wanted = new Set([...this.#o.namesOf(pod)].map((name) => `${namespace}/${name}`));
    for (const key of wanted) {
      const name = key.slice(namespace.length + 1);
      const entry = this.#entries.get(key) ?? { namespace, name, pods: new Set<PodUid>() };
      this.#entries.set(key, entry);
      entry.pods.add(uid);
      this.#follow(entry);
    }
    for (const key of this.#keysOfPod.get(uid) ?? []) if (!wanted.has(key)) this.#release(key, uid);
    this.#keysOfPod.set(uid, wanted);
    this.#registered.set(uid, pod);
  }

  unregister(uid: PodUid): void {
    for (const key of this.#keysOfPod.get(uid) ?? []) this.#release(key, uid);
    this.#keysOfPod.delete(uid);
    this.#registered.delete(uid);
  }

  /** The object as it is now, as far as we can know; `notFound` when there is none. */
  async get(namespace: string, name: string, signal: AbortSignal): Promise<T> {
    const entry = this.#entries.get(`${namespace}/${name}`);
    if (entry === undefined) return this.#read(namespace, name, signal);
    try {
      const object = await this.#of(entry, signal);
      noteTold(entry, object.metadata.resourceVersion);
      return object;
    } catch (err) {
      noteTold(entry, undefined);
      throw err;
    }
  }

  async #of(entry: Entry<T>, signal: AbortSignal): Promise<T> {
    const { namespace, name, kept, reflector } = entry;
    if (kept !== undefined && this.#deps.clock.monotonic() < kept.until) return kept.object;
    if (reflector !== undefined) {
      const watched = await this.#watched(entry, reflector, signal);
      if (watched !== undefined) return watched;
    }
    const reading = this.#read(namespace, name, signal);
    await reading.catch(() => signal.throwIfAborted());
    // The watch may have come up meanwhile: what it began with is what everybody is told from then on.
    if (entry.reflector?.synced === true) return this.#shown(entry, entry.reflector);
    const object = await reading;
    if (this.#o.strategy === 'Cache') this.#keep(entry, object, TTL_MS);
    return object;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    for (const entry of this.#entries.values()) this.#follow(entry);
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.all(this.#running);
  }

  /** How many watches are open. */
  get watches(): number {
    return [...this.#entries.values()].filter((e) => e.scope !== undefined).length;
  }

  async #read(namespace: string, name: string, signal: AbortSignal): Promise<T> {
    const { client, clock, lastKnown } = this.#deps;
    const key = `${namespace}/${name}`;
    const known = lastKnown?.get(key);
    const read = (stop: AbortSignal): Promise<T> => client.get(this.#o.resource, { namespace, name }, stop);
    try {
      const object = await (known === undefined ? read(signal) : withDeadline(clock, signal, OFFLINE_AFTER_MS, read));
      lastKnown?.set(key, object);
      return object;
    } catch (err) {
      signal.throwIfAborted();
      if (isFault(err, 'notFound')) lastKnown?.delete(key);
      if (known === undefined || !isUnreachable(err)) throw err;
      return known;
    }
  }

  /** Undefined when the watch cannot say yet: the caller asks the server itself. */
  async #watched(entry: Entry<T>, reflector: Reflector<T>, signal: AbortSignal): Promise<T | undefined> {
    if (!reflector.synced) {
      const waiting = withDeadline(this.#deps.clock, signal, SYNC_WAIT_MS, (s) => reflector.whenSynced(s));
      await waiting.catch(() => signal.throwIfAborted());
      if (!reflector.synced) return undefined;
    }
    return this.#shown(entry, reflector);
  }

  #shown(entry: Entry<T>, reflector: Reflector<T>): T {
    const object = reflector.store.byName(entry.namespace, entry.name);
    if (object !== undefined) return object;
    const kind = this.#o.resource.plural.replace(/s$/, '');
    throw new KubeletError('notFound', `${kind} "${entry.name}" not found`, { detail: { status: 404 } });
  }

  #follow(entry: Entry<T>): void {
    if (this.#o.strategy !== 'Watch' || this.#signal === undefined || this.#signal.aborted) return;
    if (entry.reflector !== undefined) return;
    const { namespace, name } = entry;
    const reflector = new Reflector<T>(this.#deps, {
      name: `${this.name} ${namespace}/${name}`,
      resource: this.#o.resource,
      namespace,
      fieldSelector: `metadata.name=${name}`,
      timeoutSeconds: WATCH_SECONDS,
      spreadMs: SPREAD_MS,
    });
    const scope = childScope(this.#signal);
    entry.reflector = reflector;
    entry.scope = scope;
    reflector.subscribe(() => {
      const object = reflector.store.byName(namespace, name);
      const isNews =
        entry.begun === true || (entry.told !== undefined && entry.told !== object?.metadata.resourceVersion);
      entry.begun = true;
      if (object?.immutable === true) this.#stopWatching(entry, object);
      if (object === undefined) this.#deps.lastKnown?.delete(`${namespace}/${name}`);
      else this.#deps.lastKnown?.set(`${namespace}/${name}`, object);
      if (isNews) this.#deps.onChange({ namespace, name, object, pods: [...entry.pods] });
    });
    const running = reflector.run(scope.signal).finally(() => {
      scope.release();
      this.#running.delete(running);
    });
    this.#running.add(running);
  }

  /** An immutable object can only go away, and then its pods keep what they have. */
  #stopWatching(entry: Entry<T>, object: T): void {
    this.#keep(entry, object, Infinity);
    entry.scope?.abort();
    delete entry.scope;
  }

  #keep(entry: Entry<T>, object: T, ms: number): void {
    entry.kept = { object, until: this.#deps.clock.monotonic() + ms };
  }

  #release(key: string, uid: PodUid): void {
    const entry = this.#entries.get(key);
    entry?.pods.delete(uid);
    if (entry === undefined || entry.pods.size > 0) return;
    this.#entries.delete(key);
    entry.scope?.abort();
  }
}
