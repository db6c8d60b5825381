// Takes the sources' changes in, one after the other: the pod store first, then admission for newcomers, then the worker.
import type { EventRecorder } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import { isMirrorPod, podKey, uidOf, type Pod, type PodStatus } from '../core/pod.ts';
import { qosClassOf } from '../core/qos.ts';
import { parseTimeMs } from '../core/time.ts';
import type { Logger } from '../lib/logger.ts';
import type { PodStore } from './pod-store.ts';
import type { PodWorkers } from './pod-workers.ts';

export type PodChange = {
  readonly op: 'ADD' | 'UPDATE' | 'DELETE' | 'REMOVE' | 'RECONCILE';
  readonly pods: readonly Pod[];
};

export type AdmissionVerdict =
  { readonly ok: true } | { readonly ok: false; readonly reason: string; readonly message: string };

export type PodChangesDeps = {
  readonly store: PodStore;
  readonly workers: PodWorkers;
  readonly status: { statusOf(uid: PodUid): PodStatus | undefined; set(pod: Pod, status: PodStatus): PodStatus };
  readonly admission: { admit(pod: Pod, active: readonly Pod[], signal: AbortSignal): Promise<AdmissionVerdict> };
  /** Resources are granted at admission; a later change is an offer that may have to wait. */
  readonly resizes: { admitted(pod: Pod): void; offer(pod: Pod, before?: Pod): void };
  /** Something at the sources changed: orphans may have appeared. */
  readonly onRemoved: () => void;
  readonly events: EventRecorder;
  readonly log: Logger;
};

const hasEnded = (status: PodStatus | undefined): boolean =>
  status?.phase === 'Failed' || status?.phase === 'Succeeded';

export class PodChanges {
  readonly #deps: PodChangesDeps;
  #queue: Promise<void> = Promise.resolve();
  readonly #signal: AbortSignal = new AbortController().signal;

  constructor(deps: PodChangesDeps) {
    this.#deps = deps;
  }

  /** Changes are handled in the order they came; resolves when this one is through. */
  handle(change: PodChange): Promise<void> {
    this.#queue = this.#queue
      .then(() => this.#handle(change))
      .catch((err: unknown) => this.#deps.log.error('pod change failed', { op: change.op, err }));
    return this.#queue;
  }

  /** Pods that take part in admission: known here and not over. */
  active(): Pod[] {
    const { store, workers, status } = this.#deps;
    return store.all().filter((pod) => {
      const state = workers.stateOf(uidOf(pod));
      if (state?.phase === 'terminated' || state?.phase === 'finished') return false;
      const over = hasEnded(pod.status) || hasEnded(status.statusOf(uidOf(pod)));
      return !over || state?.phase === 'terminating';
    });
  }

  isRejected(uid: PodUid): boolean {
    return this.#deps.workers.stateOf(uid) === undefined && hasEnded(this.#deps.status.statusOf(uid));
  }

  async #handle({ op, pods }: PodChange): Promise<void> {
    const { store } = this.#deps;
    switch (op) {
      case 'ADD':
        for (const pod of byAge(pods)) await this.#add(pod).catch((err: unknown) => this.#failed(op, pod, err));
        return;
      case 'UPDATE':
      case 'DELETE':
        for (const pod of pods) {
          const before = store.get(uidOf(pod));
          store.set(pod);
          try {
            this.#update(pod, before);
          } catch (err) {
            this.#failed(op, pod, err);
          }
        }
        return;
      case 'RECONCILE':
        for (const pod of pods) {
          const before = store.get(uidOf(pod));
          store.set(pod);
          // Mostly our own patch coming back: a sync for each would only repeat what cannot be done just now.
          if (!isMirrorPod(pod) && concernsWorker(before, pod)) this.#deps.workers.wake(uidOf(pod));
        }
        return;
      case 'REMOVE':
        for (const pod of pods) {
          store.delete(pod);
          if (isMirrorPod(pod)) this.#wakeStatic(pod);
        }
        this.#deps.onRemoved();
        return;
      default:
        return op satisfies never;
    }
  }

  /** One pod that cannot be taken in does not keep the others out. */
  #failed(op: PodChange['op'], pod: Pod, err: unknown): void {
    this.#deps.log.error('pod cannot be taken in', { op, pod: podKey(pod), err });
  }

  async #add(pod: Pod): Promise<void> {
    const { store, workers, admission } = this.#deps;
    const others = this.active();
    store.set(pod);
    if (isMirrorPod(pod)) return this.#wakeStatic(pod);
    const uid = uidOf(pod);
    const newcomer =
      workers.stateOf(uid) === undefined && !hasEnded(pod.status) && pod.metadata.deletionTimestamp === undefined;
    if (newcomer) {
      const verdict = await admission.admit(pod, others, this.#signal);
      if (!verdict.ok) return this.#reject(pod, verdict.reason, verdict.message);
    }
    this.#deps.resizes.admitted(pod);
    this.#deps.resizes.offer(pod);
    workers.ensure(pod);
  }

  #update(pod: Pod, before: Pod | undefined): void {
    if (isMirrorPod(pod)) return this.#wakeStatic(pod);
    if (this.isRejected(uidOf(pod)) && pod.metadata.deletionTimestamp === undefined) return;
    this.#deps.resizes.offer(pod, before);
    this.#deps.workers.ensure(pod);
  }

  #reject(pod: Pod, reason: string, message: string): void {
    const { events, status, log } = this.#deps;
    log.info('pod rejected', { pod: podKey(pod), reason, message });
    events.pod(pod, 'Warning', reason, message);
    const generation = pod.metadata.generation ?? 0;
    status.set(pod, {
      ...(generation > 0 ? { observedGeneration: generation } : {}),
      phase: 'Failed',
      reason,
      message: `Pod was rejected: ${message}`,
      qosClass: qosClassOf(pod),
    });
  }

  #wakeStatic(mirror: Pod): void {
    const owner = this.#deps.store.staticOf(mirror);
    if (owner !== undefined) this.#deps.workers.wake(uidOf(owner));
  }
}

/** Somebody else ended the pod, or opened or closed one of its readiness gates. */
function concernsWorker(before: Pod | undefined, now: Pod): boolean {
  const gate = (pod: Pod | undefined, type: string): string | undefined =>
    pod?.status?.conditions?.find((c) => c.type === type)?.status;
  const gates = (now.spec.readinessGates ?? []).map((g) => g.conditionType);
  return hasEnded(now.status) || gates.some((type) => gate(before, type) !== gate(now, type));
}

const byAge = (pods: readonly Pod[]): Pod[] =>
  [...pods].sort((a, b) => parseTimeMs(a.metadata.creationTimestamp) - parseTimeMs(b.metadata.creationTimestamp));
