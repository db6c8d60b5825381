// Single objects of any kind that something on this node depends on: claims, volumes, attachments, drivers. Followers of one
// object share one watch. Where a node may only get objects of a kind (`getOnly`: the node authorizer allows neither list
// nor watch), the object is read again after a pause that grows while nothing changes.
import type { KubeObject } from '../core/meta.ts';
import { childScope, type Scope } from '../lib/abort.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { Wake } from '../lib/wake.ts';
import type { ObjectClient } from './object-cache.ts';
import { Reflector } from './reflector.ts';
import { targetOf, type Resource } from './resources.ts';

export type FollowedObjectsDeps = { client: ObjectClient; clock: Clock; log: Logger };
export type ObjectName = { readonly namespace?: string; readonly name: string };

export interface Followed<T> {
  /** Whether the server has said what there is, be it nothing. */
  readonly known: boolean;
  /** As last heard; undefined when there is none or nothing is known yet. */
  readonly object: T | undefined;
  /** Reads at once what is otherwise read at intervals, and begins with short intervals again. */
  refresh(): void;
  release(): void;
}

const WATCH_SECONDS = [1800, 3600] as const;
const SPREAD_MS = 10_000;
const POLL_MS = { baseMs: 1000, maxMs: 60_000 };

/** Undefined: there is no such object. Called when it becomes known and at every change; must not throw. */
export type ObjectListener<T> = (object: T | undefined) => void;

class Entry<T extends KubeObject> {
  readonly listeners = new Set<ObjectListener<T>>();
  readonly resource: Resource<T>;
  readonly where: ObjectName;
  known = false;
  object: T | undefined;
  scope: Scope | undefined;
  /** Ends the pause before the next read. */
  readonly pause = new Wake();

  constructor(resource: Resource<T>, where: ObjectName) {
    this.resource = resource;
    this.where = where;
  }

  /** True when that is news. */
  heard(object: T | undefined): boolean {
    const before = this.object?.metadata;
    const same = before?.uid === object?.metadata.uid && before?.resourceVersion === object?.metadata.resourceVersion;
    if (this.known && same) return false;
    this.known = true;
    this.object = object;
    for (const listener of this.listeners) listener(object);
    return true;
  }
}

export class FollowedObjects implements Runnable {
  readonly name: string;
  readonly #deps: FollowedObjectsDeps;
  readonly #entries = new Map<string, Entry<KubeObject>>();
  readonly #running = new Set<Promise<void>>();
  #signal: AbortSignal | undefined;

  constructor(deps: FollowedObjectsDeps, options: { name: string }) {
    this.#deps = deps;
    this.name = options.name;
  }

  follow<T extends KubeObject>(resource: Resource<T>, where: ObjectName, listener: ObjectListener<T>): Followed<T> {
    const key = targetOf(resource, where);
    // One key is one kind of object: the resource is part of it.
    const entry = (this.#entries.get(key) as unknown as Entry<T> | undefined) ?? new Entry(resource, where);
    this.#entries.set(key, entry as unknown as Entry<KubeObject>);
    entry.listeners.add(listener);
    if (entry.known) listener(entry.object);
    this.#start(entry);
    return {
      get known() {
        return entry.known;
      },
      get object() {
        return entry.object;
      },
      refresh: () => entry.pause.wake(),
      release: () => {
        entry.listeners.delete(listener);
        if (entry.listeners.size > 0 || this.#entries.get(key) !== (entry as unknown)) return;
        this.#entries.delete(key);
        entry.scope?.abort();
      },
    };
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    for (const entry of this.#entries.values()) this.#start(entry);
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.all(this.#running);
  }

  #start<T extends KubeObject>(entry: Entry<T>): void {
    if (this.#signal === undefined || this.#signal.aborted || entry.scope !== undefined) return;
    const scope = childScope(this.#signal);
    entry.scope = scope;
    const work = entry.resource.getOnly === true ? this.#poll(entry, scope.signal) : this.#watch(entry, scope.signal);
    const running = work.finally(() => {
      scope.release();
      this.#running.delete(running);
    });
    this.#running.add(running);
  }

  #watch<T extends KubeObject>(entry: Entry<T>, signal: AbortSignal): Promise<void> {
    const { namespace, name } = entry.where;
    const reflector = new Reflector<T>(this.#deps, {
      name: `${this.name} ${entry.resource.plural} ${namespace === undefined ? '' : `${namespace}/`}${name}`,
      resource: entry.resource,
      ...(namespace === undefined ? {} : { namespace }),
      fieldSelector: `metadata.name=${name}`,
      timeoutSeconds: WATCH_SECONDS,
      spreadMs: SPREAD_MS,
    });
    reflector.subscribe(() => entry.heard(reflector.store.byName(namespace, name)));
    return reflector.run(signal);
  }

  async #poll<T extends KubeObject>(entry: Entry<T>, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const backoff = new Backoff(POLL_MS);
    while (!signal.aborted) {
      try {
        if (entry.heard(await this.#read(entry, signal))) backoff.succeeded();
      } catch (err) {
        if (signal.aborted) return;
        log.debug('object cannot be read', { object: targetOf(entry.resource, entry.where), err });
      }
      const ms = backoff.failed(clock.monotonic()) * (1 + clock.random() / 4);
      if (await entry.pause.rest(clock, ms, signal)) backoff.succeeded();
    }
  }

  async #read<T extends KubeObject>(entry: Entry<T>, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await this.#deps.client.get(entry.resource, entry.where, signal);
    } catch (err) {
      if (isFault(err, 'notFound')) return undefined;
      throw err;
    }
  }
}
