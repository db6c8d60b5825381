// A container that died makes one of its older instances superfluous; a deleted or evicted pod needs none of them.
// Woken by deaths, and when an evicted pod has stopped, one pod at a time.
import type { PodUid } from '../core/ids.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { aborted } from '../lib/abort.ts';
import { KeyedRunner } from '../lib/keyed-runner.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { GarbageCollector } from './collector.ts';

export type ContainerPrunerDeps = {
  readonly observed: { get(uid: PodUid): PodSnapshot | undefined };
  /** Whether nothing of the pod is needed any more; false for a pod that nobody knows. */
  readonly contentRemovable: (uid: PodUid) => boolean;
  readonly collector: Pick<GarbageCollector, 'prune' | 'removeContainersOf' | 'whenQuiet'>;
  readonly log: Logger;
};

type Death = { readonly type: string; readonly containerName?: string | undefined };

export class ContainerPruner implements Runnable {
  readonly name = 'container-pruning';
  readonly #deps: ContainerPrunerDeps;
  readonly #keep: number;
  readonly #runner = new KeyedRunner<PodUid>({ work: (uid) => this.#prune(uid) });
  #signal: AbortSignal | undefined;

  /** `keep`: dead instances of each container; one at least, it tells how the container ended. */
  constructor(deps: ContainerPrunerDeps, keep: number) {
    this.#deps = deps;
    this.#keep = Math.max(1, keep);
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    await aborted(signal);
    await this.#runner.stop();
  }

  observed(uid: PodUid, events: readonly Death[]): void {
    if (events.some((e) => e.type === 'ContainerDied' && e.containerName !== undefined)) this.#runner.wake(uid);
  }

  /** An evicted pod has stopped, and its status tells how: what it takes from the disk is needed. */
  evicted(uid: PodUid): void {
    this.#runner.wake(uid);
  }

  async #prune(uid: PodUid): Promise<void> {
    const { observed, contentRemovable, collector, log } = this.#deps;
    const signal = this.#signal;
    if (signal === undefined || signal.aborted) return;
    try {
      if (contentRemovable(uid)) await collector.whenQuiet(signal);
      const snapshot = observed.get(uid);
      if (snapshot === undefined) return;
      if (contentRemovable(uid)) await collector.removeContainersOf(snapshot, signal);
      else await collector.prune(snapshot, this.#keep, signal);
    } catch (err) {
      log.debug('dead containers stay for now', { uid, err });
    }
  }
}
