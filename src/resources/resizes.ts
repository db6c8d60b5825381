// In-place resizes on their way: asked for, granted or kept waiting, then carried out by the pod's worker. Grants as soon
// as there is room: when asked, when something was freed, and on a slow beat in any case.
import type { EventRecorder } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import { isStaticPod, podKey, uidOf, type Container, type Pod, type PodCondition } from '../core/pod.ts';
import { heldRequests, podRequests, type Resources } from '../core/pod-resources.ts';
import { qosClassOf } from '../core/qos.ts';
import { compareQuantities, quantity } from '../core/quantity.ts';
import { apiTime, parseTimeMs } from '../core/time.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { resizeOperations, type ResizeMetrics, type RetryTrigger } from './resize-metrics.ts';

const FIRST_RETRY_MS = 30_000;
const RETRY_MS = 180_000;

/** Pods that have to go before a resize can be granted, and the resource they go for. */
export type Room = { readonly victims: readonly Pod[]; readonly scarce?: string };

type ResizeVerdict =
  | ({ readonly ok: true } & Room)
  | {
      readonly ok: false;
      readonly reason: 'Deferred' | 'Infeasible';
      readonly message: string;
      /** As events name the reason, where that says more. */
      readonly cause?: string;
      /** As metrics name the reason. */
      readonly detail?: string;
    };

interface Allocations {
  allocated(pod: Pod): Pod;
  isResized(pod: Pod): boolean;
  grant(pod: Pod): void;
}

export type ResizesDeps = {
  readonly allocations: Allocations;
  /** Pods that count, as their specs are now. */
  readonly active: () => readonly Pod[];
  /** Before this nothing is granted: pods that run here may not be known yet. */
  readonly sourcesReady: () => boolean;
  /** `checkResize`: the pod as wanted, the others as allocated. */
  readonly check: (pod: Pod, others: readonly Pod[]) => ResizeVerdict;
  /** Evicts pods for a critical one; resolves when they have stopped, or were given up. */
  readonly makeRoom: (room: Room, signal: AbortSignal) => Promise<void>;
  /** The pod's worker has something to do: to resize, or to show another status. */
  readonly wake: (uid: PodUid) => void;
  readonly events: EventRecorder;
  readonly metrics: ResizeMetrics;
  readonly clock: Clock;
  readonly log: Logger;
};

type Waiting = {
  readonly reason: 'Deferred' | 'Infeasible';
  readonly message: string;
  readonly generation: number;
  readonly sinceMs: number;
  /** So an earlier process judged; this one has not yet. */
  readonly isResumed?: true;
};
type Running = {
  readonly reason: '' | 'Error';
  readonly message: string;
  readonly generation: number;
  readonly sinceMs: number;
};

export class Resizes implements Runnable {
  readonly name = 'resizes';
  readonly #deps: ResizesDeps;
  readonly #waiting = new Map<PodUid, Waiting>();
  readonly #running = new Map<PodUid, Running>();
  /** Resizes of critical pods for which others are being evicted. */
  readonly #making = new Map<PodUid, Promise<void>>();
  /** Asked for before all sources were heard. */
  #isPostponed = false;
  #signal: AbortSignal | undefined;

  constructor(deps: ResizesDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, sourcesReady } = this.#deps;
    this.#signal = signal;
    await clock.sleep(FIRST_RETRY_MS, signal);
    while (!signal.aborted) {
      this.retry('periodic_retry');
      await clock.sleep(sourcesReady() ? RETRY_MS : FIRST_RETRY_MS, signal);
    }
    await Promise.all(this.#making.values());
  }

  /** A pod was admitted: what its status says it waits for, it waits for still. */
  resume(pod: Pod): void {
    this.#guarded(pod, () => {
      const known = waitedBefore(pod);
      if (known === undefined || this.#waiting.has(uidOf(pod)) || !this.#deps.allocations.isResized(pod)) return;
      this.#waiting.set(uidOf(pod), { ...known, isResumed: true });
    });
  }

  /** A pod appeared, or changed from what it was before: what it asks for is granted if it can be. */
  offer(pod: Pod, before?: Pod): void {
    const { allocations, metrics } = this.#deps;
    if (before !== undefined && !isStaticPod(pod)) metrics.requested(resizeOperations(before, pod));
    if (!allocations.isResized(pod)) this.#waiting.delete(uidOf(pod));
    else this.retry(before === undefined ? 'pods_added' : 'pod_updated');
  }

  /** The status of a pod changed: what it holds no longer may be what others wait for. */
  shown(now: Pod, before: Pod): void {
    if (this.#waiting.size === 0) return;
    const held = (pod: Pod): Resources => heldRequests(this.#deps.allocations.allocated(pod));
    this.#guarded(now, () => {
      if (hasMore(held(before), held(now))) this.retry('pod_resized');
    });
  }

  /** Tries all resizes that wait, in the order of their claims. */
  retry(trigger: RetryTrigger): void {
    const { active, allocations, sourcesReady } = this.#deps;
    const wasPostponed = this.#isPostponed;
    this.#isPostponed = !sourcesReady();
    if (this.#isPostponed) return;
    // Every pod that goes makes room. Whoever could use it was offered before, and waits: but for those that were put off.
    const waiting = this.#waiting.size + this.#making.size;
    if (waiting === 0 && !wasPostponed && (trigger === 'pods_removed' || trigger === 'pod_terminated')) return;
    const pods = active();
    const wanted: Pod[] = [];
    for (const pod of pods)
      this.#guarded(pod, () => {
        if (!isStaticPod(pod) && allocations.isResized(pod)) wanted.push(pod);
      });
    const sinceOf = (pod: Pod): number => this.#waiting.get(uidOf(pod))?.sinceMs ?? Infinity;
    for (const pod of wanted.sort((a, b) => compareClaims(a, b, allocations, sinceOf)))
      this.#guarded(pod, () => this.#try(pod, pods, trigger));
  }

  /** A source was heard, and its pods have their places. */
  retryPostponed(): void {
    if (this.#isPostponed) this.retry('pods_added');
  }

  /** What is wrong with one pod costs that pod its resize, and nobody else. */
  #guarded(pod: Pod, act: () => void): void {
    try {
      act();
    } catch (err) {
      this.#deps.log.error('resize cannot be decided', { pod: podKey(pod), err });
    }
  }

  /** Told by the worker at each sync, of the pod as it was granted then: whether containers still differ from that. */
  progress(pod: Pod, inProgress: boolean): void {
    const uid = uidOf(pod);
    const known = this.#running.get(uid);
    if (inProgress && known === undefined) this.#running.set(uid, begunBefore(pod, this.#deps.clock.now()));
    if (inProgress || known === undefined) return;
    // A sync that began before the grant knows nothing of it, even if the pod asked for it already.
    if (generationOf(pod) < known.generation || this.#deps.allocations.isResized(pod)) return;
    this.#running.delete(uid);
    this.#tell(pod, known.generation, 'Normal', 'ResizeCompleted', 'completed');
  }

  /** Told by the worker when a resize could not be carried out; it will be tried again. */
  failed(pod: Pod, message: string): void {
    const known = this.#running.get(uidOf(pod));
    if (known?.reason === 'Error' && known.message === message) return;
    const sinceMs = known?.reason === 'Error' ? known.sinceMs : this.#deps.clock.now();
    // Of the resize that was granted: the pod may ask for another one by now.
    const generation = known?.generation ?? generationOf(pod);
    this.#running.set(uidOf(pod), { reason: 'Error', message, generation, sinceMs });
    this.#tell(pod, generation, 'Warning', 'ResizeError', 'error', message);
  }

  /** The pod is over: nothing waits and nothing is under way any more. */
  forget(uid: PodUid): void {
    this.#waiting.delete(uid);
    this.#running.delete(uid);
  }

  retain(alive: ReadonlySet<string>): void {
    for (const uid of [...this.#waiting.keys(), ...this.#running.keys()]) if (!alive.has(uid)) this.forget(uid);
  }

  /** PodResizePending and PodResizeInProgress as they are now. */
  conditionsOf(uid: PodUid): readonly PodCondition[] {
    const conditions: PodCondition[] = [];
    const waiting = this.#waiting.get(uid);
    if (waiting !== undefined) conditions.push(conditionOf('PodResizePending', waiting));
    const running = this.#running.get(uid);
    if (running !== undefined) conditions.push(conditionOf('PodResizeInProgress', running));
    return conditions;
  }

  #try(pod: Pod, pods: readonly Pod[], trigger: RetryTrigger): void {
    const { allocations, check, wake, metrics, log } = this.#deps;
    const uid = uidOf(pod);
    const judged = this.#waiting.get(uid);
    const known = judged ?? waitedBefore(pod);
    const generation = generationOf(pod);
    // What can never be is asked once.
    const isJudged = judged !== undefined && judged.isResumed !== true && judged.generation === generation;
    if (isJudged && judged.reason === 'Infeasible' && generation > 0) return;
    const others = pods.filter((p) => uidOf(p) !== uid).map((p) => allocations.allocated(p));
    const verdict = check(pod, others);
    if (!verdict.ok && verdict.detail !== undefined) metrics.infeasible(verdict.detail);
    if (verdict.ok && verdict.victims.length > 0) return this.#makeRoom(uid, verdict, trigger);
    if (verdict.ok) {
      if (known?.reason === 'Deferred') metrics.acceptedLate(trigger);
      allocations.grant(pod);
      this.#waiting.delete(uid);
      log.info('resize granted', { pod: podKey(pod) });
      this.#begin(pod);
      wake(uid);
      return;
    }
    const isTold = known?.reason === verdict.reason && known.generation === generation;
    if (isTold && known.message === verdict.message) {
      const { isResumed: _, ...now } = known;
      this.#waiting.set(uid, now);
      return;
    }
    const sinceMs = known?.reason === verdict.reason ? known.sinceMs : this.#deps.clock.now();
    this.#waiting.set(uid, { reason: verdict.reason, message: verdict.message, generation, sinceMs });
    if (!isTold)
      this.#tell(
        pod,
        generation,
        'Warning',
        `Resize${verdict.reason}`,
        verdict.cause ?? verdict.reason,
        verdict.message,
      );
    wake(uid);
  }

  /** Others go first. Then it is tried without them, also where one has not stopped yet: it will. */
  #makeRoom(uid: PodUid, room: Room, trigger: RetryTrigger): void {
    const { active, allocations, log, makeRoom } = this.#deps;
    const signal = this.#signal;
    if (signal === undefined || signal.aborted || this.#making.has(uid)) return;
    log.info('pods are evicted for the resize of a critical one', { uid, victims: room.victims.map(podKey) });
    const made = async (): Promise<void> => {
      try {
        await makeRoom(room, signal);
      } catch (err) {
        if (!signal.aborted) log.error('pods could not be evicted for a resize', { uid, err });
      } finally {
        this.#making.delete(uid);
      }
      if (signal.aborted) return;
      const gone = new Set(room.victims.map(uidOf));
      const pods = active().filter((p) => !gone.has(uidOf(p)));
      const pod = pods.find((p) => uidOf(p) === uid);
      if (pod !== undefined && allocations.isResized(pod)) this.#guarded(pod, () => this.#try(pod, pods, trigger));
    };
    this.#making.set(uid, made());
  }

  #begin(pod: Pod): void {
    const [sinceMs, generation] = [this.#deps.clock.now(), generationOf(pod)];
    this.#running.set(uidOf(pod), { reason: '', message: '', generation, sinceMs });
    this.#tell(pod, generation, 'Normal', 'ResizeStarted', 'started');
  }

  #tell(pod: Pod, generation: number, type: 'Normal' | 'Warning', reason: string, verb: string, error?: string): void {
    this.#deps.events.pod(pod, type, reason, `Pod resize ${verb}: ${resizeText(pod, generation, error)}`);
  }
}

const generationOf = (pod: Pod): number => pod.metadata.generation ?? 0;

/** Under way already when this process began: as its status shows it, and told then. */
function begunBefore(pod: Pod, nowMs: number): Running {
  const shown = pod.status?.conditions?.find((c) => c.type === 'PodResizeInProgress');
  return {
    reason: shown?.reason === 'Error' ? 'Error' : '',
    message: shown?.message ?? '',
    generation: shown?.observedGeneration ?? generationOf(pod),
    sinceMs: parseTimeMs(shown?.lastTransitionTime) || nowMs,
  };
}

/** Was kept waiting already when this process began: as its status shows it, and told then. */
function waitedBefore(pod: Pod): Waiting | undefined {
  const shown = pod.status?.conditions?.find((c) => c.type === 'PodResizePending');
  if (shown?.reason !== 'Deferred' && shown?.reason !== 'Infeasible') return undefined;
  const sinceMs = parseTimeMs(shown.lastTransitionTime);
  return { reason: shown.reason, message: shown.message ?? '', generation: shown.observedGeneration ?? 0, sinceMs };
}

const conditionOf = (type: string, about: Waiting | Running): PodCondition => ({
  type,
  ...(about.generation > 0 && { observedGeneration: about.generation }),
  status: 'True',
  lastProbeTime: null,
  lastTransitionTime: apiTime(about.sinceMs),
  ...(about.reason !== '' && { reason: about.reason }),
  ...(about.message !== '' && { message: about.message }),
});

/** The resources asked for, as the events show them. */
function resizeText(pod: Pod, generation: number, error: string | undefined): string {
  const list = (containers: readonly Container[] = []): { name: string; resources: unknown }[] =>
    containers.map((c) => ({ name: c.name, resources: c.resources ?? {} }));
  const { initContainers = [] } = pod.spec;
  return JSON.stringify({
    ...(initContainers.length > 0 && { initContainers: list(initContainers) }),
    containers: list(pod.spec.containers),
    generation,
    ...(error !== undefined && { error }),
  });
}

/** Resizes that free something first, then priority, then Guaranteed pods, then who waits longest. */
function compareClaims(a: Pod, b: Pod, allocations: Allocations, sinceOf: (pod: Pod) => number): number {
  const grows = (pod: Pod): number => (asksForMore(pod, allocations.allocated(pod)) ? 1 : 0);
  const guaranteed = (pod: Pod): number => (qosClassOf(pod) === 'Guaranteed' ? 0 : 1);
  const difference =
    grows(a) - grows(b) || (b.spec.priority ?? 0) - (a.spec.priority ?? 0) || guaranteed(a) - guaranteed(b);
  if (difference !== 0) return difference;
  const [sinceA, sinceB] = [sinceOf(a), sinceOf(b)];
  return sinceA === sinceB ? 0 : sinceA < sinceB ? -1 : 1;
}

const asksForMore = (wanted: Pod, granted: Pod): boolean => hasMore(podRequests(wanted), podRequests(granted));

const hasMore = (a: Resources, b: Resources): boolean =>
  ['cpu', 'memory'].some((name) => compareQuantities(a.get(name) ?? quantity('0'), b.get(name) ?? quantity('0')) > 0);
