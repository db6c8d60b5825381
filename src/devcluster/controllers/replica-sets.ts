// Replica sets: as many active pods as asked for.
import { parseTimeMs } from '../../core/time.ts';
import { numberAt, recordAt, textAt, type ApiObject } from '../api/objects.ts';
import type { Change } from '../api/store.ts';
import type { Controller, ControllerDeps } from './controller.ts';
import { Workload } from './workload.ts';
import { isActive, isAvailable, isPodReady } from './workload-pods.ts';

const STORAGE = 'apps/replicasets';
const FAILURE_PAUSE_MS = 1000;

export class ReplicaSetController implements Controller {
  readonly name = 'replica-sets';
  readonly #deps: ControllerDeps;
  readonly #workload: Workload;
  readonly #wake: (key: string) => void;

  /** `wake` has a key looked at again. */
  constructor(deps: ControllerDeps, wake: (key: string) => void) {
    this.#deps = deps;
    this.#workload = new Workload(deps.registry, {
      kind: 'ReplicaSet',
      storage: STORAGE,
      owns: 'pods',
      component: 'replicaset-controller',
    });
    this.#wake = wake;
  }

  initialKeys(): readonly string[] {
    return this.#workload.keys();
  }

  keysOf(change: Change): readonly string[] {
    return this.#workload.keysOf(change);
  }

  reconcile(key: string): void {
    const { clock } = this.#deps;
    const set = this.#workload.read(key);
    if (set === undefined) return;
    this.#workload.claim(set);
    const owned = this.#workload.owned(set);
    if (set.metadata.deletionTimestamp === undefined) this.#scale(key, set, owned);
    const now = clock.now();
    const minReady = numberAt(set, 'spec', 'minReadySeconds') ?? 0;
    const pods = this.#workload.owned(set).filter(isActive);
    const ready = pods.filter(isPodReady);
    const available = ready.filter((p) => isAvailable(p, minReady, now));
    if (ready.length > available.length) clock.after(1000, () => this.#wake(key));
    const some = (count: number): number | undefined => (count === 0 ? undefined : count);
    this.#workload.writeStatus(set, {
      replicas: pods.length,
      fullyLabeledReplicas: some(pods.length),
      readyReplicas: some(ready.length),
      availableReplicas: some(available.length),
      observedGeneration: set.metadata.generation,
    });
  }

  #scale(key: string, set: ApiObject, owned: readonly ApiObject[]): void {
    const { clock } = this.#deps;
    const active = owned.filter(isActive);
    const wanted = numberAt(set, 'spec', 'replicas') ?? 1;
    if (active.length < wanted) {
      // A pod the node refuses at once must not become a storm of new ones.
      const failing = owned.some(
        (p) =>
          textAt(p, 'status', 'phase') === 'Failed' &&
          clock.now() - parseTimeMs(p.metadata.creationTimestamp) < FAILURE_PAUSE_MS,
      );
      if (failing) clock.after(FAILURE_PAUSE_MS, () => this.#wake(key));
      else for (let i = active.length; i < wanted; i++) this.#workload.createPod(set);
    }
    for (const pod of active.toSorted(leastUseful).slice(0, Math.max(0, active.length - wanted)))
      this.#workload.deletePod(set, pod);
  }
}

/** Those who do least go first: unbound, not ready, youngest. */
function leastUseful(a: ApiObject, b: ApiObject): number {
  const rank = (pod: ApiObject): number =>
    (textAt(pod, 'spec', 'nodeName') === '' ? 0 : 2) +
    (isPodReady(pod) ? 1 : 0) +
    (Object.keys(recordAt(pod, 'status')).length > 0 ? 0.1 : 0);
  return rank(a) - rank(b) || parseTimeMs(b.metadata.creationTimestamp) - parseTimeMs(a.metadata.creationTimestamp);
}
