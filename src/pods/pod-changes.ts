// Takes the sources' changes in as they come: the pod store first, then admission for new pods, then the worker. A pod
// that cannot be taken in costs that pod only.
import type { EventRecorder } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import { hasEnded } from '../core/phase.ts';
import { isMirrorPod, podKey, uidOf, type Pod, type PodStatus } from '../core/pod.ts';
import { parseTimeMs } from '../core/time.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { AdmissionQueue, type AdmissionVerdict } from './admission-queue.ts';
import type { PodStore } from './pod-store.ts';
import type { PodWorkers } from './pod-workers.ts';
import { rejectPod } from './reject-pod.ts';

export type PodChange = {
  readonly op: 'ADD' | 'UPDATE' | 'DELETE' | 'REMOVE' | 'RECONCILE';
  readonly pods: readonly Pod[];
};

export type PodChangesDeps = {
  readonly store: PodStore;
  readonly workers: Pick<PodWorkers, 'add' | 'ensure' | 'podOf' | 'stateOf' | 'stop' | 'uids' | 'wake'>;
  readonly status: { statusOf(uid: PodUid): PodStatus | undefined; set(pod: Pod, status: PodStatus): PodStatus };
  readonly admission: { admit(pod: Pod, active: readonly Pod[], signal: AbortSignal): Promise<AdmissionVerdict> };
  /** Whether containers of the pod run, whoever started them. */
  readonly runsAlready: (pod: Pod) => boolean;
  /** Resources are granted at admission; a later change is an offer that may have to wait. */
  readonly resizes: {
    /** The pod with what it was granted: that is what it takes from others. */
    allocated(pod: Pod): Pod;
    admitted(pod: Pod): void;
    offer(pod: Pod, before?: Pod): void;
    /** The pod shows another status: what it gave back may be wanted. */
    shown(pod: Pod, before: Pod | undefined): void;
    /** Pods have their places: what had to wait for that may go on. */
    retryPostponed(): void;
  };
  /** Whether all sources have been heard: before that an absent pod may only have changed its source. */
  readonly sourcesReady: () => boolean;
  /** Something at the sources changed: orphans may have appeared. */
  readonly onRemoved: () => void;
  /** A pod was refused. */
  readonly onRefused: () => void;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
};

export class PodChanges implements Runnable {
  readonly name = 'pod-changes';
  readonly #deps: PodChangesDeps;
  readonly #admissions: AdmissionQueue;
  /** Pods that were admitted, as they were then and as admission saw them. */
  readonly #admitted: { readonly pod: Pod; readonly judged: Pod }[] = [];

  constructor(deps: PodChangesDeps) {
    this.#deps = deps;
    const { store, admission, resizes, events, clock, log } = deps;
    const allocated = (pod: Pod): Pod => resizes.allocated(pod);
    this.#admissions = new AdmissionQueue({
      admit: (pod, signal) => admission.admit(pod, this.active().map(allocated), signal),
      desired: store,
      onVerdict: (judged, verdict) => this.#judged(judged, verdict),
      onIdle: () => this.#offerResizes(),
      events,
      clock,
      log,
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#admissions.run(signal);
  }

  /** Resolves when the pods of this change are judged; nothing else waits for that. */
  async handle({ op, pods }: PodChange): Promise<void> {
    const taken = (op === 'ADD' ? this.#inTurn(pods) : pods).map(async (pod) => {
      try {
        await this.#take(op, pod);
      } catch (err) {
        this.#deps.log.error('pod cannot be taken in', { op, pod: podKey(pod), err });
      }
    });
    if (op === 'REMOVE') this.#deps.onRemoved();
    // A source that has no pods was heard all the same.
    if (op === 'ADD' && pods.length === 0) this.#admissions.goOn();
    await Promise.all(taken);
  }

  /** Those that run were admitted before, by an earlier agent; then the oldest first. */
  #inTurn(pods: readonly Pod[]): readonly Pod[] {
    const [running, others] = [byAge(pods.filter(this.#deps.runsAlready)), byAge(pods)];
    return [...new Set([...running, ...others])];
  }

  /** Pods that take part in admission: admitted and not over. */
  active(): Pod[] {
    return this.#wanted().filter((pod) => !this.#admissions.has(uidOf(pod)));
  }

  /** Pods that may run: admitted and not over, or gone at their source while their containers are still stopped. */
  running(): Pod[] {
    return [...this.active(), ...this.#leaving()];
  }

  /**
   * Pods that are not over, be they admitted, not judged yet or gone at their source while their containers are still
   * stopped: what they hold is still theirs.
   */
  unfinished(): Pod[] {
    return [...this.#wanted(), ...this.#leaving()];
  }

  #leaving(): Pod[] {
    const { store, workers } = this.#deps;
    return workers.uids().flatMap((uid) => {
      const phase = workers.stateOf(uid)?.phase;
      const isStopped = phase === 'terminated' || phase === 'finished';
      const pod = isStopped || store.get(uid) !== undefined ? undefined : workers.podOf(uid);
      return pod === undefined ? [] : [pod];
    });
  }

  /** Of the sources, and not over. */
  #wanted(): Pod[] {
    const { store, workers, status } = this.#deps;
    return store.all().filter((pod) => {
      const uid = uidOf(pod);
      const state = workers.stateOf(uid);
      if (state?.phase === 'terminated' || state?.phase === 'finished') return false;
      const over = hasEnded(pod.status) || hasEnded(status.statusOf(uid));
      return !over || state?.phase === 'terminating';
    });
  }

  /** Nobody works on the pod, because this node refused it. */
  isRejected(uid: PodUid): boolean {
    if (this.#admissions.has(uid)) return false;
    return this.#deps.workers.stateOf(uid) === undefined && hasEnded(this.#deps.status.statusOf(uid));
  }

  #take(op: PodChange['op'], pod: Pod): Promise<void> | undefined {
    const { store, workers } = this.#deps;
    const before = store.get(uidOf(pod));
    if (op === 'REMOVE') this.#remove(pod);
    else store.set(pod);
    if (isMirrorPod(pod)) {
      if (op !== 'RECONCILE') this.#wakeStatic(pod);
      return undefined;
    }
    switch (op) {
      case 'REMOVE':
        return undefined;
      case 'ADD':
        return this.#add(pod);
      case 'UPDATE':
      case 'DELETE':
        return this.#update(pod, before);
      case 'RECONCILE':
        // Mostly our own patch coming back: a sync for each would only repeat what cannot be done just now.
        if (concernsWorker(before, pod)) workers.wake(uidOf(pod));
        this.#deps.resizes.shown(pod, before);
        return undefined;
      default:
        return op satisfies never;
    }
  }

  #add(pod: Pod): Promise<void> | undefined {
    const { workers, resizes } = this.#deps;
    if (this.#needsAdmission(pod)) return this.#admissions.add(uidOf(pod));
    // One that ended before this agent began holds nothing.
    if (!hasEnded(pod.status)) resizes.admitted(pod);
    resizes.offer(pod);
    workers.add(pod);
    return undefined;
  }

  #update(pod: Pod, before: Pod | undefined): Promise<void> | undefined {
    const uid = uidOf(pod);
    if (this.#needsAdmission(pod)) return this.isRejected(uid) ? undefined : this.#admissions.add(uid);
    this.#admissions.drop(uid);
    this.#deps.resizes.offer(pod, before);
    this.#deps.workers.ensure(pod);
    return undefined;
  }

  /** A pod that nobody works on yet and that is to be started. */
  #needsAdmission(pod: Pod): boolean {
    const started = this.#deps.workers.stateOf(uidOf(pod)) !== undefined;
    return !started && !hasEnded(pod.status) && pod.metadata.deletionTimestamp === undefined;
  }

  #judged(judged: Pod, verdict: AdmissionVerdict): void {
    const { store, resizes, workers } = this.#deps;
    const pod = store.get(uidOf(judged));
    if (pod === undefined) return;
    if (!verdict.ok) return this.#reject(pod, verdict.reason, verdict.message);
    resizes.admitted(judged);
    this.#admitted.push({ pod, judged });
    workers.add(pod);
  }

  /**
   * What pods ask for beyond what they were granted comes after every pod has its place: a resize that was kept waiting
   * must not take the room of pods that run, only because a new agent judges those later.
   */
  #offerResizes(): void {
    const { store, resizes, log } = this.#deps;
    for (const { pod, judged } of this.#admitted.splice(0)) {
      // An update since then was an offer of its own.
      if (store.get(uidOf(pod)) !== pod) continue;
      try {
        resizes.offer(pod, pod === judged ? undefined : judged);
      } catch (err) {
        log.error('resize cannot be offered', { pod: podKey(pod), err });
      }
    }
    resizes.retryPostponed();
  }

  #remove(pod: Pod): void {
    const { store, workers, sourcesReady } = this.#deps;
    const uid = uidOf(pod);
    store.delete(pod);
    if (isMirrorPod(pod)) return;
    this.#admissions.drop(uid);
    if (sourcesReady() && workers.stateOf(uid) !== undefined) workers.stop(uid, { deleted: true });
  }

  #reject(pod: Pod, reason: string, message: string): void {
    rejectPod(this.#deps, pod, reason, message);
    this.#deps.onRefused();
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
