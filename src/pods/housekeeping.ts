// Finds what nobody wants any more and brings it to an end: pods that left their source, pods only the runtime knows,
// and what is left of them on disk and in cgroups. Woken by removals and finished pods, with a slow pass as the net.
// Never before all sources have been heard and the first relist is done.
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { Semaphore } from '../lib/semaphore.ts';
import type { PodStore } from './pod-store.ts';
import type { PodWorkers } from './pod-workers.ts';

export type HousekeepingDeps = {
  readonly store: Pick<PodStore, 'all' | 'has' | 'mirrors' | 'staticOf'>;
  readonly workers: Pick<PodWorkers, 'forget' | 'stateOf' | 'stop' | 'uids' | 'wantsRestart'>;
  readonly observed: { all(): Iterable<PodSnapshot> };
  readonly leftovers: Leftovers;
  /** A running pod was found that no source and no worker knows. */
  readonly onOrphan?: (uid: PodUid) => void;
  readonly clock: Clock;
  readonly log: Logger;
};

/** What a pod that is gone may have left behind, part by part. Each call is safe to repeat. */
export interface Leftovers {
  /** Whether anything may be taken away yet. */
  ready(): boolean;
  dropStatuses(known: ReadonlySet<PodUid>): void;
  /** `isInUse` is asked right before each removal: pods come while a pass goes on. */
  removeDirectories(isInUse: (uid: PodUid) => boolean, signal: AbortSignal): Promise<void>;
  removeCgroups(isInUse: (uid: PodUid) => boolean, signal: AbortSignal): Promise<void>;
  removeContainers(uid: PodUid, signal: AbortSignal): Promise<void>;
  removeMirrors(mirrors: readonly Pod[], signal: AbortSignal): Promise<void>;
}

/** Many pods may go at once; the runtime has others to serve as well. */
const REMOVALS_AT_ONCE = 4;
const NET_MS = 15_000;
/** Removals come in bursts; one pass serves them all. */
const GATHER_MS = 20;

export class Housekeeping {
  readonly name = 'housekeeping';
  readonly #deps: HousekeepingDeps;
  #wanted: (() => void) | undefined;
  #pending = false;
  /** At least one pass has compared workers with sources: from then on an unknown pod is an orphan. */
  #synced = false;

  constructor(deps: HousekeepingDeps) {
    this.#deps = deps;
  }

  get synced(): boolean {
    return this.#synced;
  }

  wake(): void {
    this.#pending = true;
    this.#wanted?.();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (!signal.aborted) {
      if (!this.#pending) await this.#wait(signal);
      await clock.sleep(GATHER_MS, signal);
      if (signal.aborted) return;
      this.#pending = false;
      if (!this.#deps.leftovers.ready()) continue;
      try {
        await this.#pass(signal);
      } catch (err) {
        if (!signal.aborted) log.error('housekeeping failed, will be tried again', { err });
      }
    }
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        signal.removeEventListener('abort', done);
        this.#wanted = undefined;
        resolve();
      };
      const timer = this.#deps.clock.after(NET_MS, done);
      this.#wanted = done;
      signal.addEventListener('abort', done, { once: true });
    });
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { store, workers, leftovers, observed } = this.#deps;
    const gone = this.#settleWorkers();
    this.#synced = true;
    for (const snapshot of observed.all()) {
      const { uid, sandboxes, containers } = snapshot;
      if (workers.stateOf(uid) !== undefined || store.has(uid)) continue;
      if (sandboxes.some((s) => s.ready) || containers.some((c) => c.state === 'running')) this.#claim(uid);
      else if (containers.length > 0) gone.push(uid);
    }
    const known = new Set<PodUid>([...workers.uids(), ...store.all().map(uidOf), ...store.mirrors().map(uidOf)]);
    leftovers.dropStatuses(known);
    const slots = new Semaphore(REMOVALS_AT_ONCE);
    const removals = gone.map((uid) => slots.run(signal, () => leftovers.removeContainers(uid, signal)));
    // All of them end before the next pass may begin, also when one fails.
    const failed = (await Promise.allSettled(removals)).find((r) => r.status === 'rejected');
    if (failed !== undefined) throw failed.reason as Error;
    const isInUse = (uid: PodUid): boolean => workers.stateOf(uid) !== undefined || store.has(uid);
    await leftovers.removeMirrors(
      store.mirrors().filter((m) => store.staticOf(m) === undefined),
      signal,
    );
    await leftovers.removeDirectories(isInUse, signal);
    await leftovers.removeCgroups(isInUse, signal);
  }

  /** Workers whose pod left its source are stopped; those that are done are dropped. Returns the dropped ones. */
  #settleWorkers(): PodUid[] {
    const { store, workers } = this.#deps;
    const gone: PodUid[] = [];
    for (const uid of workers.uids()) {
      const wanted = store.has(uid);
      const state = workers.stateOf(uid);
      if (state?.phase === 'finished') {
        if (wanted && !workers.wantsRestart(uid)) continue;
        workers.forget(uid);
        gone.push(uid);
      } else if (!wanted) workers.stop(uid, { deleted: true });
    }
    return gone;
  }

  /** A running pod without a worker: one that nobody wants is stopped at once. */
  #claim(uid: PodUid): void {
    const { workers } = this.#deps;
    this.#deps.log.info('stopping a pod that no source knows', { uid });
    this.#deps.onOrphan?.(uid);
    workers.stop(uid, { deleted: true, graceSeconds: 1 });
  }
}
