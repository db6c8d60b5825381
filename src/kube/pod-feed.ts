// The pods the API server wants on this node, as full sets. With a checkpoint the last known set is given out first when
// the API server cannot be reached at start; the server's own set replaces it as soon as it is there.
import type { Pod } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { OFFLINE_AFTER_MS } from './api-error.ts';
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
};

export class PodFeed implements Runnable {
  readonly name = 'api-pods';
  readonly reflector: Reflector<Pod>;
  readonly #deps: PodFeedDeps;

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
    const { checkpoint, clock, onPods } = this.#deps;
    const end = this.reflector.subscribe(() => {
      const pods = [...this.reflector.store.values()];
      checkpoint?.podsChanged(pods);
      onPods(pods, 'api');
    });
    const offline = clock.after(OFFLINE_AFTER_MS, () => this.#fromCheckpoint());
    try {
      await this.#deps.ready?.(signal);
      await this.reflector.run(signal);
    } finally {
      offline.cancel();
      end();
    }
  }

  #fromCheckpoint(): void {
    const { checkpoint, log, onPods } = this.#deps;
    const pods = checkpoint?.pods;
    if (pods === undefined || this.reflector.synced) return;
    log.warn('the API server cannot be reached, going on with the last known pods', { pods: pods.length });
    onPods(pods, 'checkpoint');
  }
}
