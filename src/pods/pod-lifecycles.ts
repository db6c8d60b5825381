// What other parts ask about the life of a pod and how they end one, on top of the workers. They keep no state of their own.
import type { EventRecorder } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import { endForShutdown, type EndForShutdownDeps } from './end-for-shutdown.ts';
import { evictPod, type Eviction } from './evict.ts';
import type { PodWorkers } from './pod-workers.ts';
import { contentMayBeRemoved, mayHaveRunningContainers, runtimeMayBeRemoved } from './worker-state.ts';

export type PodLifecyclesDeps = {
  readonly workers: PodWorkers;
  /** Whether all pods are known; before that, absence means nothing. */
  readonly synced: () => boolean;
  readonly volumes: EndForShutdownDeps['volumes'];
  readonly events: EventRecorder;
  readonly clock: Clock;
};

export class PodLifecycles {
  readonly #deps: PodLifecyclesDeps;

  constructor(deps: PodLifecyclesDeps) {
    this.#deps = deps;
  }

  /** Evicted or deleted, and terminated. */
  contentRemovable(uid: PodUid): boolean {
    return contentMayBeRemoved(this.#deps.workers.stateOf(uid), this.#deps.synced());
  }

  /** As `contentRemovable`, but false for a pod that nobody knows. */
  knownAndRemovable(uid: PodUid): boolean {
    return contentMayBeRemoved(this.#deps.workers.stateOf(uid), false);
  }

  /** Terminated. */
  runtimeRemovable(uid: PodUid): boolean {
    return runtimeMayBeRemoved(this.#deps.workers.stateOf(uid), this.#deps.synced());
  }

  mayBeRunning(uid: PodUid): boolean {
    return mayHaveRunningContainers(this.#deps.workers.stateOf(uid), this.#deps.synced());
  }

  /** Nothing of it uses the node any more. */
  gone(pod: Pod): boolean {
    return !this.mayBeRunning(uidOf(pod)) && this.#deps.volumes.mountsOf(uidOf(pod)).size === 0;
  }

  /** Resolves when it has stopped. */
  evict(pod: Pod, why: Eviction, signal: AbortSignal): Promise<void> {
    return evictPod(this.#deps, pod, why, signal);
  }

  /** Resolves when it has stopped and its volumes are unmounted. */
  end(pod: Pod, graceSeconds: number, signal: AbortSignal): Promise<void> {
    return endForShutdown(this.#deps, pod, graceSeconds, signal);
  }
}
