// Keeps an ObjectStore equal to what the API server has: list, replace, watch, for ever. 410, an ERROR event, a broken
// line or an early end lead to a new watch or a new list. Changes are hints; whoever hears one reads the store.
import type { KubeObject } from '../core/meta.ts';
import { abortable, childScope } from '../lib/abort.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import {
  isGone,
  isNoRoom,
  isTooLargeVersion,
  isUnreachable,
  retryAfterMs,
  statusError,
  tooLargeVersion,
} from './api-error.ts';
import { retryInMs } from './dial-gate.ts';
import { freshList, isOlder, type ListClient } from './fresh-list.ts';
import { compareVersions, ObjectStore, type Change } from './object-store.ts';
import type { Recovery } from './recovery.ts';
import type { Query, Resource, Where } from './resources.ts';
import type { WatchEvent } from './watch.ts';

/** The part of KubeClient a reflector uses. */
export interface ListWatchClient extends ListClient {
  /** Tells when the server answers again after it did not. */
  readonly recovery?: Pick<Recovery, 'answeredAt' | 'onAnswered' | 'onRecovered'>;
  /** Tells when requests go out under another client certificate. */
  readonly renewal?: { readonly count: number; onRenewed(listener: () => void): () => void };
  watch<T>(
    resource: Resource<T>,
    where: Where,
    idleMs: number,
    signal: AbortSignal,
    stood: () => void,
  ): AsyncGenerator<WatchEvent<T>, void, undefined>;
}

export type ReflectorDeps = { client: ListWatchClient; clock: Clock; log: Logger };
export type ReflectorOptions<T> = {
  name: string;
  resource: Resource<T>;
  namespace?: string;
  fieldSelector?: string;
  /** The watch asks to be ended after a random time in this range. */
  timeoutSeconds?: readonly [number, number];
  idleMs?: number;
  /** The one watch of a node that tries as often as the transport opens connections; all others wait for its success. */
  scout?: boolean;
  /** Once the server answers again, a waiting reflector comes back at a random moment within this time. */
  spreadMs?: number;
};

/** Until the next attempt. `waitsAlone`: answers to other requests say nothing about it. */
type Pause = { readonly ms: number; readonly waitsAlone?: boolean };

export type ChangeListener<T> = (changes: readonly Change<T>[]) => void;

const TIMEOUT_SECONDS = [300, 600] as const;
const IDLE_MS = 150_000;
const BACKOFF = { baseMs: 100, maxMs: 30_000 };
const SPREAD_MS = 5000;
/** Without room for a watch the list is read this often. */
const POLL_MS = 60_000;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';
/** A server that ignores `sendInitialEvents` never says that the list is over. */
const INITIAL_SILENCE_MS = 10_000;
const SHORT_WATCH_MS = 1000;
const MAX_SHORT_PAUSE_MS = 5000;
const FAILURES_BEFORE_LIST = 3;
/** A scout waits no longer than this while other requests are answered, which those of a node at rest are every 10 s. */
const SCOUT_PAUSE_MS = 1000;
const OTHERS_ANSWERED_MS = 15_000;
/** As often in a row a scout comes back at once to a server whose watches break as soon as they stand. */
const QUICK_RETURNS = 10;

export class Reflector<T extends KubeObject> implements Runnable {
  readonly name: string;
  readonly store = new ObjectStore<T>();
  readonly #deps: ReflectorDeps;
  readonly #o: ReflectorOptions<T>;
  readonly #listeners = new Set<ChangeListener<T>>();
  readonly #waiting = new Set<() => void>();
  readonly #backoff = new Backoff(BACKOFF);
  /** Where the next watch goes on; empty when a list has to come first. */
  #version = '';
  /** The newest version there was: no list may be older. */
  #seen = '';
  #synced = false;
  #connected = false;
  /** The answer to the last watch began. */
  #stood = false;
  #streamingList = true;
  #failures = 0;
  /** That broke before they had lasted. */
  #shortWatches = 0;
  /** When a list was last read without a pause before it. */
  #relistedMs = -Infinity;
  /** When a watch was last begun again because of a new client certificate. */
  #renewedMs = -Infinity;
  #lastError: unknown;

  constructor(deps: ReflectorDeps, options: ReflectorOptions<T>) {
    this.#deps = deps;
    this.#o = options;
    this.name = options.name;
  }

  /** The store has held a complete list at least once. */
  get synced(): boolean {
    return this.#synced;
  }

  /** A watch stands right now. */
  get connected(): boolean {
    return this.#connected;
  }

  /** Why there is no watch, while there is none. */
  get lastError(): unknown {
    return this.#lastError;
  }

  /** Returns a function that ends the subscription. Listeners must not throw. */
  subscribe(listener: ChangeListener<T>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async whenSynced(signal: AbortSignal): Promise<void> {
    if (this.#synced) return;
    let wake: () => void = () => undefined;
    const synced = new Promise<void>((resolve) => (wake = resolve));
    this.#waiting.add(wake);
    await abortable(signal, synced).finally(() => this.#waiting.delete(wake));
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { client, clock } = this.#deps;
      const startedAt = clock.monotonic();
      const renewals = client.renewal?.count;
      let failure: unknown;
      this.#stood = false;
      try {
        await this.#follow(signal);
      } catch (err) {
        failure = err;
      }
      this.#connected = false;
      if (signal.aborted) return;
      if (failure !== undefined && client.renewal?.count !== renewals && this.#isFirstAfterRenewal()) {
        await this.#comeBackRenewed(signal);
        continue;
      }
      const lastedMs = clock.monotonic() - startedAt;
      await this.#rest(this.#pauseAfter(failure, lastedMs), isUnreachable(failure), signal);
    }
  }

  /**
   * Waits. Once a server that could not be reached answers somebody, the wait is a short one of its own; a new client
   * certificate ends it. A scout waits for long only while no request is answered.
   */
  async #rest({ ms, waitsAlone }: Pause, unreachable: boolean, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#deps;
    const { recovery } = client;
    const waiting = childScope(signal);
    let woken: 'answered' | 'recovered' | 'renewed' | undefined;
    const wake = (by: typeof woken): void => {
      woken ??= by;
      waiting.abort();
    };
    const ends = [
      client.renewal?.onRenewed(() => wake('renewed')),
      unreachable ? recovery?.onRecovered(() => wake('recovered')) : undefined,
    ];
    if (this.#o.scout === true && waitsAlone !== true && recovery !== undefined) {
      const soonMs = Math.min(ms, this.#jittered(SCOUT_PAUSE_MS));
      const isAnswered = recovery.answeredAt > clock.monotonic() - OTHERS_ANSWERED_MS;
      ends.push(isAnswered ? undefined : recovery.onAnswered(() => wake('answered')));
      ms = isAnswered ? soonMs : ms;
    }
    await clock.sleep(ms, waiting.signal);
    for (const end of ends) end?.();
    waiting.release();
    if (woken === 'renewed' && this.#isFirstAfterRenewal()) return await this.#comeBackRenewed(signal);
    if (woken === 'recovered' && this.#o.scout !== true)
      await clock.sleep(clock.random() * (this.#o.spreadMs ?? SPREAD_MS), signal);
  }

  /** An identity that changes with every request is no reason for a loop without pauses. */
  #isFirstAfterRenewal(): boolean {
    const now = this.#deps.clock.monotonic();
    const isFirst = now - this.#renewedMs > BACKOFF.maxMs;
    if (isFirst) this.#renewedMs = now;
    return isFirst;
  }

  /** At once: nothing is wrong with the server. Only a crowd of watches whose objects are known takes its time. */
  async #comeBackRenewed(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    this.#backoff.succeeded();
    this.#succeeded();
    const { spreadMs } = this.#o;
    if (this.#synced && spreadMs !== undefined) await clock.sleep(clock.random() * spreadMs, signal);
  }

  /** One list if needed, then one watch until it ends; where there is no room for a watch, a list and a long pause. */
  async #follow(signal: AbortSignal): Promise<void> {
    try {
      await this.#listAndWatch(signal);
    } catch (err) {
      if (!isNoRoom(err)) throw err;
      await this.#list(signal);
      await this.#deps.clock.sleep(this.#jittered(POLL_MS), signal);
    }
  }

  async #listAndWatch(signal: AbortSignal): Promise<void> {
    if (this.#version === '' && this.#streamingList && this.#failures < FAILURES_BEFORE_LIST) {
      await this.#followFromStart(signal);
      return;
    }
    if (this.#version === '') await this.#list(signal);
    const query = { allowWatchBookmarks: true, resourceVersion: this.#version };
    for await (const event of this.#watch(query, this.#o.idleMs ?? IDLE_MS, signal)) this.#apply(event);
  }

  /** The streaming list: ADDED events up to a marked bookmark are the list, what follows is the watch. */
  async #followFromStart(signal: AbortSignal): Promise<void> {
    let initial: T[] | undefined = [];
    const query = { allowWatchBookmarks: true, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' };
    const scope = childScope(signal);
    const listen = (): Timer =>
      this.#deps.clock.after(INITIAL_SILENCE_MS, () =>
        scope.abort(new KubeletError('unimplemented', `${this.name}: the streaming list does not end`)),
      );
    let silence = listen();
    try {
      for await (const event of this.#watch(query, this.#o.idleMs ?? IDLE_MS, scope.signal)) {
        silence.cancel();
        if (initial === undefined) {
          this.#apply(event);
          continue;
        }
        if (event.type === 'BOOKMARK' && isInitialEnd(event.object)) {
          this.#refuseOlder(event.object.metadata.resourceVersion ?? '');
          this.#replace(initial, event.object.metadata.resourceVersion ?? '');
          initial = undefined;
          continue;
        } else if (event.type === 'ERROR') {
          throw statusError(event.object);
        } else if (event.type === 'ADDED' || event.type === 'MODIFIED') {
          initial.push(event.object);
        } else if (event.type === 'DELETED') {
          const uid = uidIn(event.object);
          initial = initial.filter((o) => uidIn(o) !== uid);
        }
        silence = listen();
      }
      if (initial !== undefined) throw new KubeletError('unavailable', `${this.name}: the list ended early`);
    } catch (err) {
      if (initial !== undefined && isRefusal(err)) this.#streamingList = false;
      throw err;
    } finally {
      silence.cancel();
      scope.release();
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const where = (query: Query): Where => this.#where(query);
    const { items, version } = await freshList(client, this.#o.resource, where, this.#seen, signal);
    this.#replace(items, version);
  }

  async *#watch(query: Query, idleMs: number, signal: AbortSignal): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const [low, high] = this.#o.timeoutSeconds ?? TIMEOUT_SECONDS;
    const timeoutSeconds = Math.floor(low + (high - low) * this.#deps.clock.random());
    const where = this.#where({ ...query, timeoutSeconds });
    const stood = (): void => void (this.#stood = true);
    for await (const event of this.#deps.client.watch(this.#o.resource, where, idleMs, signal, stood)) {
      this.#connected = this.#stood = true;
      yield event;
    }
  }

  /** The next attempt asks for a list with the version it must have. */
  #refuseOlder(version: string): void {
    if (!isOlder(version, this.#seen)) return;
    this.#failures = FAILURES_BEFORE_LIST;
    this.#connected = this.#stood = false;
    // The server answers: this is no outage, whose end a scout tries for as often as it may.
    throw tooLargeVersion(`${this.name}: the server's list is older than what was seen`);
  }

  #apply(event: WatchEvent<T>): void {
    if (event.type === 'ERROR') throw statusError(event.object);
    if (event.type !== 'BOOKMARK' && !this.#isWhole(event.object)) return;
    const version = event.object.metadata.resourceVersion ?? '';
    this.#succeeded();
    if (event.type === 'DELETED') this.#tell(this.store.delete(event.object));
    else if (event.type !== 'BOOKMARK') this.#tell(this.store.set(event.object));
    if (version !== '' && compareVersions(version, this.#version) > 0) this.#version = this.#seen = version;
  }

  #replace(objects: readonly T[], version: string): void {
    this.#version = this.#seen = version;
    this.#succeeded();
    const changes = this.store.replace(objects.filter((object) => this.#isWhole(object)));
    const first = !this.#synced;
    this.#synced = true;
    if (first || changes.length > 0) this.#tell(changes, first);
    if (first) for (const resolve of this.#waiting) resolve();
  }

  /** An object without an identity is nobody's: said, and passed over. */
  #isWhole(object: T): boolean {
    const { uid, name } = (object.metadata as Partial<KubeObject['metadata']> | undefined) ?? {};
    const whole = typeof uid === 'string' && uid !== '' && typeof name === 'string' && name !== '';
    if (!whole) this.#deps.log.error('the API server sent an object without an identity', { reflector: this.name });
    return whole;
  }

  #succeeded(): void {
    this.#failures = 0;
    this.#lastError = undefined;
  }

  #tell(changes: readonly Change<T>[], evenIfEmpty = false): void {
    if (changes.length > 0 || evenIfEmpty) for (const listener of this.#listeners) listener(changes);
  }

  #where(query: Query): Where {
    const { namespace, fieldSelector } = this.#o;
    return {
      ...(namespace === undefined ? {} : { namespace }),
      query: fieldSelector === undefined ? query : { ...query, fieldSelector },
    };
  }

  /** Decides also whether the next attempt starts with a list. */
  #pauseAfter(failure: unknown, lastedMs: number): Pause {
    const { clock, log } = this.#deps;
    const now = clock.monotonic();
    if (this.#stood && lastedMs >= SHORT_WATCH_MS) {
      this.#backoff.succeeded();
      this.#shortWatches = 0;
    }
    if (failure === undefined) {
      // The usual end of a watch. One that ends at once, again and again, must not become a loop without pauses.
      if (lastedMs >= SHORT_WATCH_MS) return { ms: 0 };
      const maxMs = this.#o.scout === true ? SHORT_WATCH_MS : MAX_SHORT_PAUSE_MS;
      return { ms: this.#jittered(Math.min(this.#backoff.failed(now), maxMs)) };
    }
    this.#lastError = failure;
    log.debug('watch ended', { reflector: this.name, err: failure });
    if (isUnreachable(failure) || isFault(failure, 'cancelled')) {
      const pauseMs = this.#backoff.failed(now);
      if (this.#o.scout !== true) return { ms: this.#jittered(pauseMs) };
      return { ms: retryInMs(failure) ?? this.#jittered(this.#stood ? this.#pauseAfterBreak(pauseMs) : pauseMs) };
    }
    this.#failures++;
    if (isGone(failure) || isTooLargeVersion(failure)) {
      this.#version = '';
      if (this.#isFirstRelist(now)) return { ms: 0 };
      const pauseMs = this.#backoff.failed(now);
      const ms = this.#jittered(this.#o.scout === true ? Math.min(pauseMs, MAX_SHORT_PAUSE_MS) : pauseMs);
      return { ms, waitsAlone: !isGone(failure) };
    }
    if (this.#failures >= FAILURES_BEFORE_LIST) this.#version = '';
    // `Retry-After: 0` is no invitation to a loop, and a day is longer than a node can go without its pods.
    const askedMs = retryAfterMs(failure);
    const ms = Math.max(Math.min(askedMs ?? 0, BACKOFF.maxMs), this.#jittered(this.#backoff.failed(now)));
    // A refusal, a plea for less or a time that the server names is for this very watch.
    return { ms, waitsAlone: askedMs !== undefined || !isFault(failure, 'unavailable', 'deadline', 'internal') };
  }

  /** A watch that stood and broke shows nothing about the next one, unless that happens again and again. */
  #pauseAfterBreak(pauseMs: number): number {
    return ++this.#shortWatches <= QUICK_RETURNS ? BACKOFF.baseMs : Math.min(pauseMs, MAX_SHORT_PAUSE_MS);
  }

  /** A list that is needed is read at once, but not again and again: after it, a server that lags refuses the watch. */
  #isFirstRelist(now: number): boolean {
    const isFirst = now - this.#relistedMs > BACKOFF.maxMs;
    if (isFirst) this.#relistedMs = now;
    return isFirst;
  }

  #jittered(ms: number): number {
    return ms * (0.5 + this.#deps.clock.random() / 2);
  }
}

/** Objects are not looked at before they are applied. */
const uidIn = (object: Partial<KubeObject>): string | undefined => object.metadata?.uid;
const isInitialEnd = (object: KubeObject): boolean => object.metadata.annotations?.[INITIAL_EVENTS_END] === 'true';
const isRefusal = (err: unknown): boolean => !isGone(err) && isFault(err, 'invalid', 'unimplemented');
