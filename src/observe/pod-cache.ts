// What the runtime says about every pod: the only writer of observed state. Reads of one pod never overlap, a request
// during a read causes exactly one more; a pod whose read hangs is set aside by name and hurts nobody else.
import type { CriRuntime } from '../cri/services.ts';
import type { PodUid } from '../core/ids.ts';
import { emptySnapshot, type JustDone, type ObservedState, type PodSnapshot } from '../core/snapshot.ts';
import { abortable, withDeadline } from '../lib/abort.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { isFault, KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { readMadePod, readPod, readStoppedPod } from './read-pod.ts';
import { listAll } from './list-all.ts';
import { groupByPod, listedSnapshot, listingDiffers, withUnlisted, type Listing } from './listing.ts';
import { assembleSnapshot, type PodRead } from './snapshot-of.ts';
import { sameObservation, transitions, type PlegEvent } from './transitions.ts';

export type PodCacheDeps = { readonly runtime: CriRuntime; readonly clock: Clock; readonly log: Logger };
export type PodCacheOptions = {
  /** After this long a pod's read is given up and the pod set aside. */
  readonly readDeadlineMs?: number;
  readonly parallelReads?: number;
  /** Told how long each read of one pod took, in milliseconds. */
  readonly onRead?: (tookMs: number) => void;
};

/** `events` is empty when something else than a life changed (an address, a container created). */
export type PodChange = (uid: PodUid, events: readonly PlegEvent[]) => void;

export type UnreadablePod = {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  /** Wall time of the first failed read. */
  readonly sinceMs: number;
  readonly error: string;
};

type Trouble = { -readonly [K in keyof UnreadablePod]: UnreadablePod[K] } & {
  readonly backoff: Backoff;
  retryAt: number;
  timer: Timer | undefined;
};
type News = 'started' | 'stopped';
type Mutation = {
  readonly foreseen: readonly News[];
  timer: Timer | undefined;
  readonly news: Map<string, News>;
};
/** Whatever was read since the list began has a higher version. */
type VersionedListing = Listing & { readonly version: number; readonly isWhole: boolean };
type Reads = { current: Promise<PodSnapshot>; next: Promise<PodSnapshot> | undefined };

/** A container that runs or has ended is shown soon even if the next one takes minutes. */
const UNREAD_NEWS_WAIT_MS = 1000;
/** Reads and events that come late do so within seconds; a relist is the net below. */
const REMEMBERED_REMOVALS = 256;

export class PodCache {
  readonly #deps: PodCacheDeps;
  readonly #o: Required<PodCacheOptions>;
  readonly #pods = new Map<PodUid, PodSnapshot>();
  readonly #reads = new Map<PodUid, Reads>();
  readonly #troubled = new Map<PodUid, Trouble>();
  readonly #owners = new Map<string, PodUid>();
  readonly #listeners = new Set<PodChange>();
  readonly #slots: Semaphore;
  /** Pods that somebody is changing and will read afterwards; whether news of them came that no read has seen. */
  readonly #mutations = new Map<PodUid, Set<Mutation>>();
  /** Pods that were changed without a read afterwards, with the number of that change: what is shown of them is too old to act on. */
  readonly #outdated = new Map<PodUid, number>();
  #changes = 0;
  /** What the runtime has no more, in case a read that began before comes late or an event tells of it. Ids are never used again. */
  readonly #removed = new Set<string>();
  readonly #removing = new Set<string>();
  /** Pods of which nothing was found, with the version of that read, in case a list that began before comes late. */
  readonly #gone = new Map<PodUid, number>();
  /** Pods a relist is reading or waiting to read: a slow one must not take a second slot. */
  readonly #inTurn = new Set<PodUid>();
  readonly #lifetime = new AbortController();
  #unlabelled: ReadonlyMap<PodUid, readonly string[]> = new Map();
  #version = 0;
  #ready = false;
  #whenReady: (() => void)[] = [];

  constructor(deps: PodCacheDeps, options: PodCacheOptions = {}) {
    this.#deps = deps;
    this.#o = {
      readDeadlineMs: options.readDeadlineMs ?? 10_000,
      parallelReads: options.parallelReads ?? 8,
      onRead: options.onRead ?? (() => undefined),
    };
    this.#slots = new Semaphore(this.#o.parallelReads);
  }

  /** True once the first full relist is done: nothing may be deleted before. */
  get ready(): boolean {
    return this.#ready;
  }

  /** Resolves with the first full relist. */
  whenReady(signal: AbortSignal): Promise<void> {
    if (this.#ready) return Promise.resolve();
    return abortable(signal, new Promise((resolve) => this.#whenReady.push(resolve)));
  }

  /** Undefined when the runtime has nothing of this pod. `partial` when it has, but could never describe it in full. */
  get(uid: PodUid): PodSnapshot | undefined {
    return this.#pods.get(uid);
  }

  all(): readonly PodSnapshot[] {
    return [...this.#pods.values()];
  }

  /** The pod a container or sandbox belongs to, as far as seen. */
  ownerOf(id: string): PodUid | undefined {
    return this.#owners.get(id);
  }

  /** What a container is doing as far as seen; of a sandbox, whether it is ready (running) or not (exited). */
  stateOf(id: string): ObservedState | undefined {
    const owner = this.#owners.get(id);
    const snapshot = owner === undefined ? undefined : this.#pods.get(owner);
    if (snapshot === undefined || snapshot.partial === true) return undefined;
    const sandbox = snapshot.sandboxes.find((s) => s.id === id);
    if (sandbox !== undefined) return sandbox.ready ? 'running' : 'exited';
    return snapshot.containers.find((c) => c.id === id)?.state;
  }

  /** Pods whose last read failed for a reason of their own, longest first. */
  unreadable(): readonly UnreadablePod[] {
    return [...this.#troubled.values()]
      .map(({ uid, name, namespace, sinceMs, error }) => ({ uid, name, namespace, sinceMs, error }))
      .sort((a, b) => a.sinceMs - b.sinceMs);
  }

  /** Calls back after every read that found something new. Returns the way to stop that. */
  onChange(listener: PodChange): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * A snapshot that was read entirely after this call. Rejects when the read fails; the cache then stays as it was. Of a
   * pod that nobody has seen yet and the caller has just made, and of one he has just stopped (all of it or its
   * containers), only the containers are read that are not known to have ended.
   */
  async refresh(uid: PodUid, signal: AbortSignal, done?: JustDone): Promise<PodSnapshot> {
    signal.throwIfAborted();
    return await abortable(signal, this.#request(uid, done));
  }

  /** Somebody removes a container or sandbox: nobody else has to look at it, unless that fails. */
  async whileRemoving(id: string, removal: Promise<void>): Promise<void> {
    this.#removing.add(id);
    try {
      await removal;
      this.#drop(id);
    } catch (err) {
      const owner = this.#owners.get(id);
      if (owner !== undefined) void this.#request(owner).catch(() => undefined); // #failed records it
      throw err;
    } finally {
      this.#removing.delete(id);
    }
  }

  #drop(id: string): void {
    this.#removed.add(id);
    forgetOldest(this.#removed);
    const owner = this.#owners.get(id);
    const previous = owner === undefined ? undefined : this.#pods.get(owner);
    if (previous !== undefined) this.#store({ ...this.#present(previous), version: ++this.#version }, previous);
  }

  /** Whether it is gone, or on its way, by somebody who tells. */
  isRemoved(id: string): boolean {
    return this.#removed.has(id) || this.#removing.has(id);
  }

  #present<T extends PodRead>(read: T): T {
    return {
      ...read,
      sandboxes: read.sandboxes.filter((s) => !this.#removed.has(s.id)),
      containers: read.containers.filter((c) => !this.#removed.has(c.id)),
    };
  }

  /**
   * For somebody who starts or stops things in this pod and refreshes it afterwards: what the runtime tells of what he
   * foresees is not read one by one. Returns the end of that. News that no read has seen then, or after a second, cause one. Who could
   * not read what he did says so (`unseen`): the pod is outdated until a later read.
   */
  beginMutation(uid: PodUid, ...foreseen: readonly News[]): (unseen: boolean) => void {
    const mutation: Mutation = { foreseen, timer: undefined, news: new Map() };
    const ofPod = this.#mutations.get(uid) ?? new Set();
    this.#mutations.set(uid, ofPod.add(mutation));
    return (unseen) => {
      if (unseen) this.#outdated.set(uid, ++this.#changes);
      ofPod.delete(mutation);
      if (ofPod.size === 0) this.#mutations.delete(uid);
      // Another one who foresees it will read it.
      for (const [id, news] of mutation.news) if (this.recordNews(uid, id, news)) mutation.news.delete(id);
      this.#readMissedNews(uid, mutation);
    };
  }

  /** Whether something was done to this pod that no read has seen: whoever acts on the snapshot would do it twice. */
  isOutdated(uid: PodUid): boolean {
    return this.#outdated.has(uid);
  }

  /** Records a start or an end in this pod; true when the mutation under way will read it. */
  recordNews(uid: PodUid, id: string, news: News): boolean {
    const mutation = [...(this.#mutations.get(uid) ?? [])].find((m) => m.foreseen.includes(news));
    if (mutation === undefined) return false;
    mutation.news.set(id, news);
    mutation.timer ??= this.#deps.clock.after(UNREAD_NEWS_WAIT_MS, () => this.#readMissedNews(uid, mutation));
    return true;
  }

  /**
   * Lists everything and re-reads the pods that changed since they were read. The first time it waits for those reads,
   * later they go on by themselves. Says how many pods had changed unnoticed.
   */
  async relist(signal: AbortSignal): Promise<number> {
    const version = ++this.#version;
    const { sandboxes, containers, isWhole } = await listAll(this.#deps.runtime, signal);
    const listing = { ...groupByPod(sandboxes, containers), version, isWhole };
    this.#unlabelled = listing.unlabelled;
    const stale = this.#staleAgainst(listing);
    const reads = Promise.all(stale.map((uid) => this.#readInTurn(uid, listing)));
    for (const uid of this.#troubled.keys()) if (!this.#inTurn.has(uid)) this.#showListed(uid, listing);
    if (!this.#ready) {
      await abortable(signal, reads);
      this.#ready = true;
      for (const done of this.#whenReady.splice(0)) done();
    }
    return stale.length;
  }

  /** Gives up all reads under way; the cache answers from what it has. */
  close(): void {
    for (const { timer } of this.#troubled.values()) timer?.cancel();
    for (const ofPod of this.#mutations.values()) for (const { timer } of ofPod) timer?.cancel();
    this.#lifetime.abort(new KubeletError('cancelled', 'the pod cache is closed'));
  }

  #staleAgainst(listing: Listing): PodUid[] {
    const now = this.#deps.clock.monotonic();
    const uids = new Set([...listing.pods.keys(), ...this.#pods.keys(), ...this.#outdated.keys()]);
    for (const uid of this.#troubled.keys()) if (!uids.has(uid)) this.#resetBackoff(uid);
    return [...uids].filter((uid) => {
      if (this.#inTurn.has(uid)) return false;
      const trouble = this.#troubled.get(uid);
      if (trouble !== undefined) return now >= trouble.retryAt;
      const known = this.#pods.get(uid);
      return this.#outdated.has(uid) || known?.partial === true || listingDiffers(listing.pods.get(uid), known);
    });
  }

  /** Never rejects: a failed read is remembered in `#troubled` and tried again by a later relist. */
  async #readInTurn(uid: PodUid, listing: VersionedListing): Promise<void> {
    this.#inTurn.add(uid);
    try {
      await this.#slots.run(this.#lifetime.signal, () => this.#request(uid));
    } catch (err) {
      this.#deps.log.debug('pod could not be read', { uid, err });
      this.#showListed(uid, listing);
    } finally {
      this.#inTurn.delete(uid);
    }
  }

  /** A pod that could never be read must not look like one that is not there: somebody would start it again. */
  #showListed(uid: PodUid, { pods, version, isWhole }: VersionedListing): void {
    const listed = pods.get(uid);
    const trouble = this.#troubled.get(uid);
    const known = this.#pods.get(uid);
    if (listed === undefined || (known !== undefined && known.partial !== true)) return;
    // A read that began after the list has shown the pod, or that there is none.
    if ((known?.version ?? this.#gone.get(uid) ?? 0) > version) return;
    if (trouble !== undefined) Object.assign(trouble, { name: listed.name, namespace: listed.namespace });
    const shown = listedSnapshot(uid, listed, ++this.#version);
    this.#store(isWhole ? shown : withUnlisted(shown, known), known);
  }

  #request(uid: PodUid, done?: JustDone): Promise<PodSnapshot> {
    const reads = this.#reads.get(uid);
    if (reads === undefined) return this.#begin(uid, done);
    const again = (): Promise<PodSnapshot> => this.#begin(uid);
    reads.next ??= reads.current.then(again, again);
    return reads.next;
  }

  #readMissedNews(uid: PodUid, mutation: Mutation): void {
    mutation.timer?.cancel();
    mutation.timer = undefined;
    const unseen = [...mutation.news].some(([id, news]) => {
      const state = this.stateOf(id) ?? 'created';
      return news === 'started' ? state === 'created' : state !== 'exited';
    });
    mutation.news.clear();
    if (unseen) void this.#request(uid).catch(() => undefined); // #failed records it
  }

  #begin(uid: PodUid, done?: JustDone): Promise<PodSnapshot> {
    const current = this.#read(uid, done).finally(() => {
      const reads = this.#reads.get(uid);
      if (reads?.next === undefined) this.#reads.delete(uid);
    });
    this.#reads.set(uid, { current, next: undefined });
    return current;
  }

  async #read(uid: PodUid, done: JustDone | undefined): Promise<PodSnapshot> {
    const { clock } = this.#deps;
    const previous = this.#pods.get(uid);
    const begun = clock.monotonic();
    const change = this.#outdated.get(uid);
    try {
      const read = await withDeadline(clock, this.#lifetime.signal, this.#o.readDeadlineMs, (signal) =>
        abortable(signal, this.#ask(uid, previous, change === undefined ? done : undefined, signal)),
      );
      this.#o.onRead(clock.monotonic() - begun);
      this.#recovered(uid);
      if (change !== undefined && this.#outdated.get(uid) === change) this.#outdated.delete(uid);
      // A list may have shown it meanwhile, and told what happened.
      const shown = this.#pods.get(uid);
      if (shown !== previous && isOlder(read, shown)) return await this.#read(uid, undefined);
      return this.#store(assembleSnapshot(this.#present(read), shown?.ips ?? [], ++this.#version), shown);
    } catch (err) {
      this.#failed(uid, previous, err);
      throw err;
    }
  }

  async #ask(
    uid: PodUid,
    previous: PodSnapshot | undefined,
    done: JustDone | undefined,
    signal: AbortSignal,
  ): Promise<PodRead> {
    const { runtime } = this.#deps;
    const unlabelled = this.#unlabelled.get(uid) ?? [];
    const known = previous?.partial === true ? undefined : previous;
    const search = (): Promise<PodRead> => readPod(runtime, uid, known, unlabelled, signal);
    if (done === undefined || unlabelled.length > 0) return search();
    return (await this.#askRest(uid, known, done, signal)) ?? search();
  }

  /** What is left to read after what was done; undefined when only a search tells. */
  async #askRest(
    uid: PodUid,
    known: PodSnapshot | undefined,
    done: JustDone,
    signal: AbortSignal,
  ): Promise<PodRead | undefined> {
    const { runtime } = this.#deps;
    if (typeof done === 'object') return this.#pods.has(uid) ? undefined : readMadePod(runtime, uid, done.made, signal);
    return known && readStoppedPod(runtime, known, { sandboxes: done === 'stopped' }, signal);
  }

  #store(snapshot: PodSnapshot, previous: PodSnapshot | undefined): PodSnapshot {
    const { uid } = snapshot;
    const exists = snapshot.sandboxes.length > 0 || snapshot.containers.length > 0;
    const current = exists ? snapshot : undefined;
    for (const id of idsOf(previous)) this.#owners.delete(id);
    for (const id of idsOf(current)) this.#owners.set(id, uid);
    if (current === undefined) this.#pods.delete(uid);
    else this.#pods.set(uid, current);
    this.#gone.delete(uid);
    if (current === undefined) this.#gone.set(uid, snapshot.version);
    forgetOldest(this.#gone);
    const events = transitions(previous, current);
    if (events.length > 0 || !sameObservation(previous, current)) this.#tell(uid, events);
    return current ?? emptySnapshot(uid, snapshot.name, snapshot.namespace, snapshot.version);
  }

  #tell(uid: PodUid, events: readonly PlegEvent[]): void {
    for (const listener of this.#listeners) {
      try {
        listener(uid, events);
      } catch (err) {
        this.#deps.log.error('pod change listener failed', { uid, err });
      }
    }
  }

  /** A runtime that is away is nobody's fault; everything else is remembered against the pod. */
  #failed(uid: PodUid, previous: PodSnapshot | undefined, err: unknown): void {
    if (isFault(err, 'unavailable', 'cancelled') || this.#lifetime.signal.aborted) return;
    const { clock, log } = this.#deps;
    let trouble = this.#troubled.get(uid);
    if (trouble === undefined) {
      trouble = {
        uid,
        name: previous?.name ?? '',
        namespace: previous?.namespace ?? '',
        sinceMs: clock.now(),
        error: '',
        backoff: new Backoff({ baseMs: 1000, maxMs: 60_000 }),
        retryAt: 0,
        timer: undefined,
      };
      this.#troubled.set(uid, trouble);
      const pod = previous === undefined ? {} : { pod: `${previous.namespace}/${previous.name}` };
      log.warn('pod set aside: the runtime cannot describe it', { ...pod, uid, err });
    }
    trouble.error = messageOf(err);
    const now = clock.monotonic();
    // Hints and callers may ask many times while it waits; that makes the wait no longer.
    if (now < trouble.retryAt) return;
    const waitMs = trouble.backoff.failed(now);
    trouble.retryAt = now + waitMs;
    trouble.timer?.cancel();
    trouble.timer = clock.after(waitMs, () => void this.#request(uid).catch(() => undefined)); // #failed records it
  }

  #recovered(uid: PodUid): void {
    if (this.#resetBackoff(uid)) this.#deps.log.info('pod can be read again', { uid });
  }

  #resetBackoff(uid: PodUid): boolean {
    this.#troubled.get(uid)?.timer?.cancel();
    return this.#troubled.delete(uid);
  }
}

/** What has ended never runs again: whoever says so was asked before the end. */
const isOlder = (read: PodRead, shown: PodSnapshot | undefined): boolean =>
  read.containers.some(
    ({ id, state }) => state !== 'exited' && shown?.containers.some((c) => c.id === id && c.state === 'exited'),
  ) || read.sandboxes.some(({ id, ready }) => ready && shown?.sandboxes.some((s) => s.id === id && !s.ready));

const idsOf = (snapshot: PodSnapshot | undefined): string[] => [
  ...(snapshot?.sandboxes ?? []).map((s) => s.id),
  ...(snapshot?.containers ?? []).map((c) => c.id),
];

function forgetOldest<K>(remembered: { readonly size: number; keys(): Iterable<K>; delete(key: K): unknown }): void {
  const [oldest] = remembered.keys();
  if (remembered.size > REMEMBERED_REMOVALS && oldest !== undefined) remembered.delete(oldest);
}
