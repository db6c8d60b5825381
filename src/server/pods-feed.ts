// Tells watchers of the pods API what became of pods. A change names a pod only; what is told is read from the stores, so
// that a pod and its status always belong together. A watcher that does not read is let go.
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod, type PodStatus } from '../core/pod.ts';
import type { Counter } from '../lib/metrics.ts';

export type PodEvent = { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly pod: Pod };

export type PodsFeedDeps = {
  /** Every pod of this node but mirror pods. */
  readonly pods: { get(uid: PodUid): Pod | undefined; all(): readonly Pod[] };
  readonly statuses: {
    get(uid: PodUid): { readonly status: PodStatus; readonly finished: boolean } | undefined;
  };
  /** `kubelet_pod_watch_events_dropped_total`. */
  readonly dropped: Counter;
};

/** Takes an event; false when its reader is too slow to be told more. */
export type Watcher = { readonly tell: (event: PodEvent) => boolean; readonly disconnect: () => void };

type Told = { readonly pod: Pod; readonly status: PodStatus };

export class PodsFeed {
  readonly #deps: PodsFeedDeps;
  readonly #watchers = new Set<Watcher>();
  /** Pods that were announced, and what was said last. */
  readonly #told = new Map<PodUid, Told>();

  constructor(deps: PodsFeedDeps) {
    this.#deps = deps;
  }

  /** All pods with their statuses, by UID. */
  list(): readonly Pod[] {
    const { pods } = this.#deps;
    return pods
      .all()
      .map((pod) => this.#withStatus(pod))
      .sort((a, b) => (uidOf(a) < uidOf(b) ? -1 : 1));
  }

  get(uid: PodUid): Pod | undefined {
    const pod = this.#deps.pods.get(uid);
    return pod === undefined ? undefined : this.#withStatus(pod);
  }

  /** Events from now on. Returns what was announced before, by UID. */
  watch(watcher: Watcher): readonly Pod[] {
    this.#watchers.add(watcher);
    return [...this.#told.values()]
      .map(({ pod, status }) => ({ ...pod, status }))
      .sort((a, b) => (uidOf(a) < uidOf(b) ? -1 : 1));
  }

  unwatch(watcher: Watcher): void {
    this.#watchers.delete(watcher);
  }

  allChanged(pods: readonly Pod[]): void {
    for (const pod of pods) this.changed(uidOf(pod));
  }

  /** Something about the pod may have changed. */
  changed(uid: PodUid): void {
    const { pods, statuses } = this.#deps;
    const pod = pods.get(uid);
    const entry = statuses.get(uid);
    const before = this.#told.get(uid);
    if (pod === undefined || entry?.finished === true) {
      if (before === undefined) return;
      this.#told.delete(uid);
      this.#tell({ type: 'DELETED', pod: identityOf(before.pod) });
      return;
    }
    const status = entry?.status ?? pod.status;
    // Announced once there is something to say about it.
    if (status?.phase === undefined) return;
    if (before?.pod === pod && before.status === status) return;
    this.#told.set(uid, { pod, status });
    this.#tell({ type: before === undefined ? 'ADDED' : 'MODIFIED', pod: { ...pod, status } });
  }

  #tell(event: PodEvent): void {
    for (const watcher of this.#watchers) {
      if (watcher.tell(event)) continue;
      this.#deps.dropped.inc();
      this.#watchers.delete(watcher);
      watcher.disconnect();
    }
  }

  #withStatus(pod: Pod): Pod {
    const status = this.#deps.statuses.get(uidOf(pod))?.status;
    return status === undefined ? pod : { ...pod, status };
  }
}

/** What is left of a pod that is gone. */
const identityOf = ({ metadata: { name, namespace, uid } }: Pod): Pod => ({
  metadata: { name, ...(namespace !== undefined && { namespace }), ...(uid !== undefined && { uid }) },
  spec: { containers: [] },
});
