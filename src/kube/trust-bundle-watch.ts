// The cluster's bundles of trust anchors, watched from the first pod on that asks: the gate is off by default, and so may
// the API be.
import type { KubeObject } from '../core/meta.ts';
import type { ClusterTrustBundle } from '../core/node.ts';
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { Runnable } from '../lib/supervise.ts';

/** A reflector, or what of it is needed here. */
export interface Watched<T> extends Runnable {
  readonly synced: boolean;
  whenSynced(signal: AbortSignal): Promise<void>;
  readonly store: { values(): Iterable<T> };
}

/** What the first pod waits for before it is told to try again. */
const FIRST_READ_MS = 1000;

/** As the API server has them, else as they were last; undefined if nobody ever said. */
export const knownObjects = <T extends KubeObject>(
  watched: Pick<Watched<T>, 'synced' | 'store'>,
  before: readonly T[] | undefined,
): readonly T[] | undefined => (watched.synced ? [...watched.store.values()] : before);

export class TrustBundleWatch implements Runnable {
  readonly name: string;
  readonly #clock: Clock;
  readonly #watched: Watched<ClusterTrustBundle>;
  readonly #before: () => readonly ClusterTrustBundle[] | undefined;
  readonly #asked = Promise.withResolvers<void>();

  /** `before`: the bundles as they were before a boot. */
  constructor(
    clock: Clock,
    watched: Watched<ClusterTrustBundle>,
    before: () => readonly ClusterTrustBundle[] | undefined,
  ) {
    this.name = watched.name;
    this.#clock = clock;
    this.#watched = watched;
    this.#before = before;
  }

  async run(signal: AbortSignal): Promise<void> {
    await abortable(signal, this.#asked.promise).catch(() => undefined);
    await this.#watched.run(signal);
  }

  async bundles(signal: AbortSignal): Promise<readonly ClusterTrustBundle[] | undefined> {
    this.#asked.resolve();
    const synced = (own: AbortSignal): Promise<void> => this.#watched.whenSynced(own);
    if (!this.#watched.synced)
      await withDeadline(this.#clock, signal, FIRST_READ_MS, synced).catch(() => signal.throwIfAborted());
    return knownObjects(this.#watched, this.#before());
  }
}
