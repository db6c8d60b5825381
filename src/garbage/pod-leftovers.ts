// What pods that are gone have left: their records in the parts, dead containers, mirror pods, directories and cgroups.
// Housekeeping says which pods; one thing that cannot be removed is logged, and keeps nothing else from being removed.
import { podUid, type PodUid } from '../core/ids.ts';
import { podKey, type Pod } from '../core/pod.ts';
import { isAlive, type PodSnapshot } from '../core/snapshot.ts';
import type { Logger } from '../lib/logger.ts';
import { Semaphore } from '../lib/semaphore.ts';

export type PodLeftoversDeps = {
  /** Parts that remember something by pod. */
  readonly records: readonly { keepOnly(known: ReadonlySet<PodUid>): void }[];
  readonly observed: { get(uid: PodUid): PodSnapshot | undefined };
  readonly containers: {
    /** Pods that start and stop come first, for a while. */
    whenQuiet(signal: AbortSignal): Promise<void>;
    removeContainersOf(snapshot: PodSnapshot, signal: AbortSignal): Promise<unknown>;
  };
  readonly mirrors: { removeMirror(mirror: Pod, signal: AbortSignal): Promise<void> };
  readonly directories: {
    list(): Promise<readonly string[]>;
    removeOrphan(uid: string, signal: AbortSignal): Promise<void>;
  };
  readonly volumes: {
    /** Unmounts what pods that are not in use have mounted. */
    removeUnknown(isInUse: (uid: string) => boolean): void;
    hasMounts(uid: string): boolean;
  };
  readonly cgroups: {
    listPodUids(signal: AbortSignal): Promise<readonly PodUid[]>;
    /** An orphan whose volumes are still in use keeps its cgroup, but no longer competes for the processors. */
    reduceToMinimum(uid: PodUid, signal: AbortSignal): Promise<void>;
    destroy(uid: PodUid, signal: AbortSignal): Promise<void>;
  };
  /** How many directories were removed, and how many could not be. */
  readonly onSwept: (cleaned: number, failed: number) => void;
  readonly log: Logger;
};

/** Many pods may go at once; the runtime and the machine have others to serve as well. */
const REMOVALS_AT_ONCE = 4;

export class PodLeftovers {
  readonly #deps: PodLeftoversDeps;

  constructor(deps: PodLeftoversDeps) {
    this.#deps = deps;
  }

  dropRecords(known: ReadonlySet<PodUid>): void {
    for (const records of this.#deps.records) records.keepOnly(known);
  }

  async removeContainers(
    uids: readonly PodUid[],
    isInUse: (uid: PodUid) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { observed, containers } = this.#deps;
    if (uids.length === 0) return;
    await containers.whenQuiet(signal);
    await this.#each('dead containers stay for now', uids, signal, async (uid) => {
      const snapshot = observed.get(uid);
      if (snapshot !== undefined && !isInUse(uid)) await containers.removeContainersOf(snapshot, signal);
    });
  }

  async removeMirrors(mirrors: readonly Pod[], signal: AbortSignal): Promise<void> {
    const remove = (mirror: Pod): Promise<void> => this.#deps.mirrors.removeMirror(mirror, signal);
    await this.#each('orphaned mirror pod stays for now', mirrors, signal, remove);
  }

  /** Of these pods, or of all that are found to have one. */
  async removeDirectories(
    of: readonly PodUid[] | 'found',
    isInUse: (uid: PodUid) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { observed, directories, volumes, onSwept } = this.#deps;
    const isUsed = (uid: string): boolean => isInUse(podUid(uid)) || isAlive(observed.get(podUid(uid)));
    volumes.removeUnknown(isUsed);
    if (of.length === 0) return;
    let cleaned = 0;
    const isOrphan = (uid: string): boolean => !isUsed(uid) && !volumes.hasMounts(uid);
    const uids = (of === 'found' ? await directories.list() : of).filter(isOrphan);
    const failed = await this.#each('orphaned pod directory stays', uids, signal, async (uid) => {
      // It may have come back while it waited.
      if (!isOrphan(uid)) return;
      await directories.removeOrphan(uid, signal);
      cleaned++;
    });
    onSwept(cleaned, failed);
  }

  async removeCgroups(isInUse: (uid: PodUid) => boolean, signal: AbortSignal): Promise<void> {
    const { cgroups, volumes } = this.#deps;
    const uids = (await cgroups.listPodUids(signal)).filter((uid) => !isInUse(uid));
    await this.#each('orphaned pod cgroup stays for now', uids, signal, async (uid) => {
      if (isInUse(uid)) return;
      if (volumes.hasMounts(uid)) await cgroups.reduceToMinimum(uid, signal);
      else await cgroups.destroy(uid, signal);
    });
  }

  /** A few at a time; returns how many failed. */
  async #each<T extends string | Pod>(
    failure: string,
    items: readonly T[],
    signal: AbortSignal,
    work: (item: T) => Promise<void>,
  ): Promise<number> {
    const slots = new Semaphore(REMOVALS_AT_ONCE);
    let failed = 0;
    const one = async (item: T): Promise<void> => {
      try {
        await work(item);
      } catch (err) {
        signal.throwIfAborted();
        failed++;
        this.#deps.log.warn(failure, { item: typeof item === 'string' ? item : podKey(item), err });
      }
    };
    await Promise.all(items.map((item) => slots.run(signal, () => one(item))));
    return failed;
  }
}
