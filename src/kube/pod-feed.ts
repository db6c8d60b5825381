// The pods the API server wants on this node: a full set after every list, one pod after an event. With a checkpoint the
// last known set is given out first when the API server cannot be reached at start; the server's own set replaces it as
// soon as it is there.
import type { Pod } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { OFFLINE_AFTER_MS } from './api-error.ts';
import type { Change } from './object-store.ts';
import { Reflector, type ListWatchClient } from './reflector.ts';
import { PODS } from './resources.ts';

export type PodFeedDeps = {
  client: ListWatchClient;
  clock: Clock;
  log: Logger;
  checkpoint?: { readonly pods: readonly Pod[] | undefined; podsChanged(pods: readonly Pod[]): void };
  /** Awaited before the first request: pods are judged by the node's own object, which must be there first. */
  ready?: (signal: AbortSignal) => Promise<void>;
  /** `checkpoint` sets may be out of date: nothing may be deleted because it is missing from one. */
  onPods: (pods: readonly Pod[], origin: 'api' | 'checkpoint') => void;
  /** One pod of the set was added, changed or (undefined) removed. A node of many pods does not compare them all for one. */
  onPod: (uid: string, pod: Pod | undefined) => void;
};

export class PodFeed implements Runnable {
  readonly name = 'api-pods';
  readonly reflector: Reflector<Pod>;
  readonly #deps: PodFeedDeps;
  #heard = false;

  constructor(deps: PodFeedDeps, options: { nodeName: string }) {
    this.#deps = deps;
    this.reflector = new Reflector<Pod>(deps, {
      name: this.name,
      resource: PODS,
      fieldSelector: `spec.nodeName=${options.nodeName}`,
      scout: true,
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const end = this.reflector.subscribe((changes) => this.#changed(changes));
    const offline = clock.after(OFFLINE_AFTER_MS, () => this.#fromCheckpoint());
    try {
      await this.#deps.ready?.(signal);
      await this.reflector.run(signal);
    } finally {
      offline.cancel();
      end();
    }
  }

  #changed(changes: readonly Change<Pod>[]): void {
    const { checkpoint, onPods, onPod } = this.#deps;
    checkpoint?.podsChanged([...this.reflector.store.values()]);
    const [change] = changes;
    if (this.#heard && change !== undefined && changes.length === 1) return onPod(change.uid, change.after);
    this.#heard = true;
    onPods([...this.reflector.store.values()], 'api');
  }

  #fromCheckpoint(): void {
    const { checkpoint, log, onPods } = this.#deps;
    const pods = checkpoint?.pods;
    if (pods === undefined || this.reflector.synced) return;
    log.warn('the API server cannot be reached, going on with the last known pods', { pods: pods.length });
    onPods(pods, 'checkpoint');
  }
}
