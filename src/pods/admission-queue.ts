// Admits new pods one after the other: each is judged with those before it on the node. Nothing else waits here: updates
// and removals of other pods go on, an admission has a deadline, and one that fails is tried again with back-off.
import type { EventRecorder } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import { podKey, uidOf, type Pod } from '../core/pod.ts';
import { abortable, aborted, childScope, withDeadline, type Scope } from '../lib/abort.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';

export type AdmissionVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly message: string };

export type AdmissionQueueDeps = {
  readonly admit: (pod: Pod, signal: AbortSignal) => Promise<AdmissionVerdict>;
  /** The pod as it is wanted now; undefined once its source removed it. */
  readonly desired: { get(uid: PodUid): Pod | undefined };
  /** `judged` is the pod as admission saw it. */
  readonly onVerdict: (judged: Pod, verdict: AdmissionVerdict) => void;
  /** Everybody in line was judged; some may wait for another try. */
  readonly onIdle: () => void;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
};

type Waiting = {
  readonly backoff: Backoff;
  readonly decided: PromiseWithResolvers<void>;
  timer: Timer | undefined;
};

/** Longer than any preemption waits for its victims. */
const DEADLINE_MS = 180_000;
const RETRY = { baseMs: 1000, maxMs: 60_000 };

export class AdmissionQueue implements Runnable {
  readonly name = 'admission';
  readonly #deps: AdmissionQueueDeps;
  /** Every pod that is not judged yet, also those that wait for their next try. */
  readonly #waiting = new Map<PodUid, Waiting>();
  readonly #line = new Set<PodUid>();
  #current: { readonly uid: PodUid; readonly scope: Scope } | undefined;
  #signal: AbortSignal | undefined;
  #draining: Promise<void> = Promise.resolve();

  constructor(deps: AdmissionQueueDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    this.#drain();
    await aborted(signal);
    for (const { timer } of this.#waiting.values()) timer?.cancel();
    await this.#draining;
  }

  /** Nobody came: if nobody is in line either, that is told. */
  goOn(): void {
    this.#drain();
  }

  /** Whether the pod still waits for its verdict. */
  has(uid: PodUid): boolean {
    return this.#waiting.has(uid);
  }

  /** Resolves when the pod is judged or dropped. */
  add(uid: PodUid): Promise<void> {
    const known = this.#waiting.get(uid);
    if (known !== undefined) return known.decided.promise;
    const waiting: Waiting = {
      backoff: new Backoff(RETRY),
      decided: Promise.withResolvers<void>(),
      timer: undefined,
    };
    this.#waiting.set(uid, waiting);
    this.#line.add(uid);
    this.#drain();
    return waiting.decided.promise;
  }

  /** The pod needs no verdict any more; an admission under way is called off. */
  drop(uid: PodUid): void {
    const waiting = this.#waiting.get(uid);
    if (waiting === undefined) return;
    waiting.timer?.cancel();
    this.#waiting.delete(uid);
    this.#line.delete(uid);
    if (this.#current?.uid === uid) this.#current.scope.abort();
    waiting.decided.resolve();
  }

  #drain(): void {
    const signal = this.#signal;
    if (signal === undefined || this.#current !== undefined) return;
    if (signal.aborted) return;
    const [uid] = this.#line;
    if (uid === undefined) return this.#deps.onIdle();
    this.#line.delete(uid);
    const scope = childScope(signal);
    this.#current = { uid, scope };
    this.#draining = this.#admit(uid, scope.signal).finally(() => {
      scope.release();
      this.#current = undefined;
      this.#drain();
    });
  }

  async #admit(uid: PodUid, signal: AbortSignal): Promise<void> {
    const { admit, desired, onVerdict, clock } = this.#deps;
    const pod = desired.get(uid);
    const waiting = this.#waiting.get(uid);
    if (waiting === undefined) return;
    if (pod === undefined) return this.drop(uid);
    try {
      const verdict = await withDeadline(clock, signal, DEADLINE_MS, (own) => abortable(own, admit(pod, own)));
      if (signal.aborted) return;
      this.#waiting.delete(uid);
      onVerdict(pod, verdict);
      waiting.decided.resolve();
    } catch (err) {
      if (!signal.aborted) this.#retryLater(pod, waiting, err);
    }
  }

  /** Nobody judged the pod: it is neither started nor rejected. */
  #retryLater(pod: Pod, waiting: Waiting, err: unknown): void {
    const { clock, events, log } = this.#deps;
    const uid = uidOf(pod);
    this.#waiting.set(uid, waiting);
    const retryMs = waiting.backoff.failed(clock.monotonic());
    log.error('pod could not be admitted, will be tried again', { pod: podKey(pod), uid, retryMs, err });
    const message = `Admission failed and will be tried again: ${messageOf(err)}`;
    events.pod(pod, 'Warning', 'UnexpectedAdmissionError', message);
    waiting.timer = clock.after(retryMs, () => {
      this.#line.add(uid);
      this.#drain();
    });
  }
}
