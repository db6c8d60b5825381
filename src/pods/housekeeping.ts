// Finds what nobody wants any more and brings it to an end: pods that left their source, pods only the runtime knows,
// and what is left of them on disk and in cgroups. Woken by removals and finished pods, with a slow pass as the net.
// Never before all sources have been heard and the first relist is done.
import type { PodUid } from '../core/ids.ts';
import { fullName, uidOf, type Pod } from '../core/pod.ts';
import { isAlive, type PodSnapshot } from '../core/snapshot.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { aborted } from '../lib/abort.ts';
import { KeyedRunner } from '../lib/keyed-runner.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { PodStore } from './pod-store.ts';
import type { PodWorkers } from './pod-workers.ts';

export type HousekeepingDeps = {
  readonly store: Pick<PodStore, 'all' | 'byFullName' | 'has' | 'mirrors' | 'staticOf'>;
  readonly workers: Pick<PodWorkers, 'forget' | 'mayRunStatic' | 'stateOf' | 'stop' | 'stopRefused' | 'uids'>;
  /** Whether nobody works on a pod of the store because this node refused it. */
  readonly isRejected: (uid: PodUid) => boolean;
  readonly observed: { all(): Iterable<PodSnapshot> };
  readonly leftovers: Leftovers;
  /** Running pods that no source names, and that the broken manifest of one may be about. */
  readonly kept: () => {
    mayBeWanted(snapshot: PodSnapshot): boolean;
    /** Takes all that are kept. */
    tell(kept: readonly PodSnapshot[]): void;
  };
  /** Whether all sources have been heard and the runtime has been listed: before that absence means nothing. */
  readonly ready: () => boolean;
  /** A running pod was found that no worker knows, and that no source has or this node refused. */
  readonly onOrphan?: (uid: PodUid) => void;
  readonly clock: Clock;
  readonly log: Logger;
};

/** What a pod that is gone may have left behind, part by part. Each call is safe to repeat. */
export interface Leftovers {
  /** Drops what parts remember of all pods but these. */
  dropRecords(known: ReadonlySet<PodUid>): void;
  /** `isInUse` is asked right before each removal: pods come while a pass goes on. */
  removeContainers(uids: readonly PodUid[], isInUse: (uid: PodUid) => boolean, signal: AbortSignal): Promise<void>;
  removeMirrors(mirrors: readonly Pod[], signal: AbortSignal): Promise<void>;
  removeDirectories(of: WhichPods, isInUse: (uid: PodUid) => boolean, signal: AbortSignal): Promise<void>;
  removeCgroups(isInUse: (uid: PodUid) => boolean, signal: AbortSignal): Promise<void>;
}

/** Those that are known to be gone, or whatever is found. */
export type WhichPods = readonly PodUid[] | 'found';

/** What is there is listed so often; in between only pods that have just gone are cleared away. */
const NET_MS = 15_000;
/** Removals come in bursts; one pass serves them all. */
const GATHER_MS = 20;

export class Housekeeping implements Runnable {
  readonly name = 'housekeeping';
  readonly #deps: HousekeepingDeps;
  #timer: Timer | undefined;
  #signal: AbortSignal | undefined;
  #synced = false;
  /** Pods without a worker that stay as they are, by UID with their names. */
  #kept: ReadonlyMap<PodUid, string> = new Map();
  /** A pass is due in a moment. */
  #soon = false;
  /** May have containers. */
  #gone: PodUid[] = [];
  /** Have a directory. */
  #finished: PodUid[] = [];
  /** When everything has to be listed again. */
  #listAtMs = -Infinity;
  #list = false;
  /** Cleaning may take long; pods that have to stop do not wait for it. */
  readonly #cleaning = new KeyedRunner<'clean' | 'containers'>({
    work: (what) => (what === 'clean' ? this.#clean() : this.#removeContainers()),
  });

  constructor(deps: HousekeepingDeps) {
    this.#deps = deps;
  }

  /** At least one pass has compared workers with sources: from then on an unknown pod is an orphan. */
  get synced(): boolean {
    return this.#synced;
  }

  wake(): void {
    if (this.#signal === undefined || this.#soon) return;
    this.#soon = true;
    this.#passIn(GATHER_MS);
  }

  /** The runtime shows something new of this pod: without a worker it may be an orphan. */
  podObserved(uid: PodUid): void {
    if (this.#deps.workers.stateOf(uid) === undefined) this.wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    this.wake();
    await aborted(signal);
    this.#timer?.cancel();
    await this.#cleaning.stop();
  }

  #passIn(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#deps.clock.after(ms, () => this.#pass());
  }

  #pass(): void {
    this.#soon = false;
    if (this.#signal?.aborted !== false) return;
    this.#passIn(NET_MS);
    if (!this.#deps.ready()) return;
    this.#settleWorkers();
    this.#synced = true;
    this.#decideKept();
    this.#settleOrphans();
    this.#decideListing();
    this.#cleaning.wake('clean');
    this.#cleaning.wake('containers');
  }

  #isInUse(uid: PodUid): boolean {
    return this.#deps.workers.stateOf(uid) !== undefined || this.#deps.store.has(uid) || this.#kept.has(uid);
  }

  /** Beside the rest, which does not wait until pods have started and stopped. */
  #removeContainers(): Promise<void> {
    const gone = [...new Set(this.#gone.splice(0))].filter((uid) => !this.#isInUse(uid));
    const { leftovers } = this.#deps;
    return this.#do('containers', (stop) => leftovers.removeContainers(gone, (uid) => this.#isInUse(uid), stop));
  }

  async #do(what: string, step: (signal: AbortSignal) => Promise<void> | void): Promise<void> {
    const signal = this.#signal;
    if (signal === undefined || signal.aborted) return;
    try {
      await step(signal);
    } catch (err) {
      if (!signal.aborted) this.#deps.log.error('housekeeping failed, will be tried again', { what, err });
    }
  }

  #decideListing(): void {
    const now = this.#deps.clock.monotonic();
    if (now < this.#listAtMs) return;
    this.#listAtMs = now + NET_MS;
    this.#list = true;
  }

  /** Workers whose pod left its source are stopped; those that are done are dropped. */
  #settleWorkers(): void {
    const { store, workers } = this.#deps;
    for (const uid of workers.uids())
      this.#guarded(uid, () => {
        if (store.has(uid)) return;
        if (workers.stateOf(uid)?.phase !== 'finished') return workers.stop(uid, { deleted: true });
        workers.forget(uid);
        this.#gone.push(uid);
        this.#finished.push(uid);
      });
  }

  /** What is wrong with one pod keeps no other from being settled. */
  #guarded(uid: PodUid, settle: () => void): void {
    try {
      settle();
    } catch (err) {
      this.#deps.log.error('pod could not be settled, will be tried again', { uid, err });
    }
  }

  /** A pod of the same name in another manifest takes its place. */
  #decideKept(): void {
    const { store, workers, observed } = this.#deps;
    const kept = this.#deps.kept();
    const found = [...observed.all()].filter(
      (s) =>
        isAlive(s) &&
        workers.stateOf(s.uid) === undefined &&
        !store.has(s.uid) &&
        store.byFullName(nameOf(s)) === undefined &&
        kept.mayBeWanted(s),
    );
    this.#kept = new Map(found.map((s) => [s.uid, nameOf(s)]));
    kept.tell(found);
  }

  /** What only the runtime knows, or what runs of a refused pod: a running pod is stopped, a dead one removed. */
  #settleOrphans(): void {
    const { store, workers, observed, isRejected, onOrphan, log } = this.#deps;
    for (const snapshot of observed.all()) {
      const { uid, containers } = snapshot;
      const isKnown = store.has(uid);
      if (workers.stateOf(uid) !== undefined || (isKnown && !isRejected(uid)) || this.#kept.has(uid)) continue;
      if (!isAlive(snapshot)) {
        if (!isKnown && containers.length > 0) this.#gone.push(uid);
        continue;
      }
      log.info(isKnown ? 'stopping a pod that was rejected' : 'stopping a pod that no source knows', { uid });
      onOrphan?.(uid);
      this.#guarded(uid, () =>
        isKnown ? workers.stopRefused(uid) : workers.stop(uid, { deleted: true, graceSeconds: 1 }),
      );
    }
  }

  /** One step that fails does not keep the others from being done. */
  async #clean(): Promise<void> {
    const { store, workers, leftovers } = this.#deps;
    const withDirectory = this.#list ? 'found' : [...this.#finished];
    const listing = this.#list;
    this.#finished = [];
    this.#list = false;
    const isInUse = (uid: PodUid): boolean => this.#isInUse(uid);
    // The mirror pod shows a static pod until that has stopped.
    const keptNames = new Set(this.#kept.values());
    const isOrphan = (m: Pod): boolean =>
      store.staticOf(m) === undefined && !workers.mayRunStatic(fullName(m)) && !keptNames.has(fullName(m));
    const known = (): Set<PodUid> =>
      new Set([...workers.uids(), ...store.all().map(uidOf), ...store.mirrors().map(uidOf), ...this.#kept.keys()]);
    await this.#do('records', () => leftovers.dropRecords(known()));
    await this.#do('mirror pods', (stop) => leftovers.removeMirrors(store.mirrors().filter(isOrphan), stop));
    await this.#do('directories', (stop) => leftovers.removeDirectories(withDirectory, isInUse, stop));
    // A worker that has finished has destroyed the cgroup of its pod.
    if (listing) await this.#do('cgroups', (stop) => leftovers.removeCgroups(isInUse, stop));
  }
}

const nameOf = ({ name, namespace }: PodSnapshot): string => fullName({ metadata: { name, namespace } });
