// Brings the API server's pod statuses in line with the status store: one PATCH per change, based on the watch's copy of
// the pod and guarded by its UID; the object is read only when that copy is missing or the server objects. Deletes pods
// that are really gone. Woken per pod; a slow full round is the safety net.
import type { PodUid } from '../core/ids.ts';
import {
  fullName,
  isMirrorPod,
  isStaticPod,
  namespaceOf,
  podKey,
  uidOf,
  type Pod,
  type PodStatus,
} from '../core/pod.ts';
import { apiTime } from '../core/time.ts';
import { isUnreachable } from '../kube/api-error.ts';
import { POD_MERGE_KEYS, strategicMergeDiff } from '../kube/patch.ts';
import { PODS, type Resource, type Where } from '../kube/resources.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import { KeyedRunner } from '../lib/keyed-runner.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';
import { isFinalPhase } from '../core/phase.ts';
import { mergePodStatus } from './merge-status.ts';

type Named = Where & { readonly name: string };
export interface PodClient {
  get<T>(resource: Resource<T>, where: Named, signal: AbortSignal): Promise<T>;
  patch<T>(resource: Resource<T>, where: Named, body: object, signal: AbortSignal): Promise<T>;
  delete(
    resource: Resource<unknown>,
    where: Named,
    options: { gracePeriodSeconds?: number; preconditions?: { uid: string } },
    signal: AbortSignal,
  ): Promise<void>;
}

/** What should be shown. StatusStore fits. */
export interface DesiredStatuses {
  get(
    uid: PodUid,
  ):
    | { readonly pod: Pod; readonly status: PodStatus; readonly version: number; readonly finished: boolean }
    | undefined;
  all(): Iterable<[PodUid, unknown]>;
  delete(uid: PodUid): void;
}

/** What the API server is known to have: the pod reflector's store. */
export interface WatchedPods {
  get(uid: string): Pod | undefined;
  byName(namespace: string | undefined, name: string): Pod | undefined;
}

export type StatusSyncDeps = {
  client: PodClient;
  statuses: DesiredStatuses;
  watched: WatchedPods;
  /** Whether a pod's containers may still be running: its final phase is withheld then. */
  mayBeRunning: (uid: PodUid) => boolean;
  /** What should be shown of this pod is shown now. */
  onSynced?: (uid: PodUid) => void;
  clock: Clock;
  log: Logger;
};

const CONCURRENCY = 4;
/** A patch that takes longer waits for somebody's webhook: other pods are told of meanwhile. */
const SLOW_MS = 1000;
const FULL_ROUND_MS = 10_000;
const RETRY = { baseMs: 100, maxMs: 10_000 };
/** A server that does not answer is tried more often: that costs it nothing, and it may be back. */
const UNREACHABLE_RETRY_MS = 2000;
/**
 * A pod that is deleted has a new generation and, most often, a new status a moment later; when its containers have ended,
 * its phase is final a moment later. What belongs together goes together.
 */
const NEXT_STATUS_MS = 1000;

type Sent = {
  readonly version: number;
  /** Empty when the server has no such pod. */
  readonly apiUid: string;
  readonly finished: boolean;
  /** A final phase is still held back. */
  readonly withheld: boolean;
  /** The pod was deleted after it. */
  readonly deleted?: boolean;
};
type Retry = { readonly backoff: Backoff; timer?: Timer };

export class StatusSync implements Runnable {
  readonly name = 'status-sync';
  readonly #deps: StatusSyncDeps;
  readonly #sent = new Map<PodUid, Sent>();
  readonly #retries = new Map<PodUid, Retry>();
  /** Answers to our own patches that are newer than what the watch has shown so far, by the pod they are about. */
  readonly #answers = new Map<PodUid, Pod>();
  /** Pods of which a patch waits for what follows, or has waited long enough. */
  readonly #waiting = new Map<PodUid, Timer | 'over'>();
  readonly #runner: KeyedRunner<PodUid>;
  #signal: AbortSignal | undefined;

  constructor(deps: StatusSyncDeps) {
    this.#deps = deps;
    this.#runner = new KeyedRunner<PodUid>({
      work: (uid) => this.#work(uid),
      concurrency: CONCURRENCY,
      patience: { clock: deps.clock, ms: SLOW_MS },
    });
  }

  /** A pod's desired status changed, or whether its containers may be running. */
  wake(uid: PodUid): void {
    if (this.#signal !== undefined) this.#runner.wake(uid);
  }

  /** What the watch shows now; a pod that is gone there is told of by others. */
  apiPodsChanged(changes: readonly { readonly after?: Pod | undefined }[]): void {
    for (const { after } of changes) if (after !== undefined) this.#guarded(after, () => this.apiPodChanged(after));
  }

  /** The watch shows a new copy: somebody else may have written to it, or a mirror wants its static pod's status. */
  apiPodChanged(api: Pod): void {
    if (!isMirrorPod(api)) return this.wake(uidOf(api));
    for (const [uid] of this.#deps.statuses.all()) {
      const pod = this.#deps.statuses.get(uid)?.pod;
      if (pod !== undefined && isStaticPod(pod) && fullName(pod) === fullName(api)) this.wake(uid);
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    const { clock, log } = this.#deps;
    await runEvery(clock, log, { name: this.name, everyMs: FULL_ROUND_MS }, () => this.#wakeStale(), signal);
    await this.#runner.stop();
    for (const uid of [...this.#retries.keys(), ...this.#waiting.keys()]) this.#forget(uid);
  }

  #wakeStale(): void {
    for (const [uid] of this.#deps.statuses.all())
      this.#guarded(uid, () => {
        if (!this.#retries.has(uid) && this.#isStale(uid)) this.#runner.wake(uid);
      });
    for (const uid of this.#sent.keys()) if (this.#deps.statuses.get(uid) === undefined) this.#forget(uid);
  }

  /** What one pod's data does to this must not keep the others from being told. */
  #guarded(pod: unknown, look: () => void): void {
    try {
      look();
    } catch (err) {
      this.#deps.log.error('the status of a pod makes no sense', { pod, err });
    }
  }

  /** The last thing sent is not what should be shown, or the API object no longer shows it. */
  #isStale(uid: PodUid): boolean {
    const desired = this.#deps.statuses.get(uid);
    const sent = this.#sent.get(uid);
    if (desired === undefined) return false;
    if (sent === undefined || sent.version < desired.version || sent.finished !== desired.finished) return true;
    if (sent.withheld && !this.#deps.mayBeRunning(uid)) return true;
    const api = this.#apiCopy(desired.pod);
    if (api === undefined) return false;
    if (api.metadata.uid !== sent.apiUid) return true;
    return desired.finished && this.#mayDelete(api, desired.pod, true);
  }

  async #work(uid: PodUid): Promise<void> {
    const signal = this.#signal;
    if (signal === undefined || signal.aborted) return;
    try {
      await this.#sync(uid, signal);
      if (!this.#waiting.has(uid)) this.#deps.onSynced?.(uid);
      this.#retries.get(uid)?.timer?.cancel();
      this.#retries.delete(uid);
    } catch (err) {
      if (signal.aborted) return;
      this.#deps.log.warn('failed to update status for pod', { uid, err });
      this.#retryLater(uid, isUnreachable(err) ? UNREACHABLE_RETRY_MS : RETRY.maxMs);
    }
  }

  #retryLater(uid: PodUid, mostMs: number): void {
    const { clock } = this.#deps;
    const retry = this.#retries.get(uid) ?? { backoff: new Backoff(RETRY) };
    retry.timer?.cancel();
    retry.timer = clock.after(Math.min(retry.backoff.failed(clock.monotonic()), mostMs), () => this.wake(uid));
    this.#retries.set(uid, retry);
  }

  async #sync(uid: PodUid, signal: AbortSignal): Promise<void> {
    const desired = this.#deps.statuses.get(uid);
    if (desired === undefined) return this.#forget(uid);
    const { pod } = desired;
    let api = this.#apiCopy(pod);
    if (api === undefined && this.#sent.get(uid)?.deleted === true) return; // by us: the watch agrees
    for (let attempt = 0; ; attempt++) {
      if (api === undefined && !isStaticPod(pod)) api = await this.#read(pod, signal);
      if (api === undefined) return this.#nothingThere(uid, desired); // a pod's or mirror's arrival wakes us again
      if (!this.#isSame(api, pod)) {
        if (!isStaticPod(pod)) this.#deps.statuses.delete(uid); // another pod has the name: nothing to say about ours
        return this.#forget(uid);
      }
      try {
        await this.#send(uid, desired, api, signal);
        return;
      } catch (err) {
        if (isFault(err, 'notFound')) return this.#nothingThere(uid, desired);
        // A pod of the same name with another UID: servers say either.
        if (!isFault(err, 'conflict', 'invalid') || attempt > 0) throw err;
        this.#answers.delete(uid);
        api = undefined; // the copy is out of date: read it and try once more
      }
    }
  }

  async #send(
    uid: PodUid,
    desired: NonNullable<ReturnType<DesiredStatuses['get']>>,
    api: Pod,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, clock, log, mayBeRunning } = this.#deps;
    const { pod, status, version, finished } = desired;
    const running = !finished && mayBeRunning(uid);
    const merged = mergePodStatus(pod, api.status ?? {}, status, running, apiTime(clock.now()));
    const apiUid = api.metadata.uid ?? '';
    const where = { namespace: namespaceOf(api), name: api.metadata.name };
    const before = { status: api.status ?? {} };
    const patch = strategicMergeDiff(before, { metadata: { uid: apiUid }, status: merged }, POD_MERGE_KEYS);
    const withheld = merged.phase !== status.phase;
    let current = api;
    if (patch['status'] !== undefined) {
      const moreFollows = api.metadata.deletionTimestamp !== undefined && !finished;
      if (moreFollows && (withheld || isOnlyGeneration(patch)) && this.#mayWait(uid)) return;
      this.#endWait(uid);
      current = await client.patch(PODS, { ...where, subresource: 'status' }, patch, signal);
      this.#answers.set(uid, current);
      log.debug('status for pod updated', { pod: podKey(pod), version });
    }
    const deleted = finished && this.#mayDelete(current, pod, finished);
    if (deleted) {
      await client.delete(PODS, where, { gracePeriodSeconds: 0, preconditions: { uid: apiUid } }, signal);
      log.info('pod fully terminated and removed from the API server', { pod: podKey(pod), uid });
      this.#answers.delete(uid);
    }
    this.#sent.set(uid, { version, apiUid, finished, withheld, deleted });
  }

  /** False when it has waited. */
  #mayWait(uid: PodUid): boolean {
    const { clock } = this.#deps;
    const over = (): void => {
      this.#waiting.set(uid, 'over');
      this.wake(uid);
    };
    if (!this.#waiting.has(uid)) this.#waiting.set(uid, clock.after(NEXT_STATUS_MS, over));
    return this.#waiting.get(uid) !== 'over';
  }

  #endWait(uid: PodUid): void {
    const waiting = this.#waiting.get(uid);
    if (waiting !== 'over') waiting?.cancel();
    this.#waiting.delete(uid);
  }

  #nothingThere(uid: PodUid, { version, finished }: { version: number; finished: boolean }): void {
    this.#answers.delete(uid);
    this.#sent.set(uid, { version, apiUid: '', finished, withheld: false });
  }

  #mayDelete(api: Pod, pod: Pod, finished: boolean): boolean {
    if (!finished || isStaticPod(pod) || isMirrorPod(api)) return false;
    return api.metadata.deletionTimestamp !== undefined && isFinalPhase(api.status?.phase);
  }

  /** The newest copy of the API object that stands for `pod`: itself, or its mirror. */
  #apiCopy(pod: Pod): Pod | undefined {
    const { watched } = this.#deps;
    const found = isStaticPod(pod) ? watched.byName(namespaceOf(pod), pod.metadata.name) : watched.get(uidOf(pod));
    const answer = this.#answers.get(uidOf(pod));
    if (answer === undefined) return found;
    const isNewer = answer.metadata.uid === found?.metadata.uid && versionOf(answer) > versionOf(found);
    if (isNewer) return answer;
    this.#answers.delete(uidOf(pod));
    return found;
  }

  async #read(pod: Pod, signal: AbortSignal): Promise<Pod | undefined> {
    try {
      return await this.#deps.client.get(PODS, { namespace: namespaceOf(pod), name: pod.metadata.name }, signal);
    } catch (err) {
      // A node may not even ask about a pod that the API server no longer knows to be on it.
      if (isFault(err, 'notFound') || (isFault(err, 'denied') && err.detail['status'] === 403)) return undefined;
      throw err;
    }
  }

  #isSame(api: Pod, pod: Pod): boolean {
    return isStaticPod(pod) ? isMirrorPod(api) : api.metadata.uid === pod.metadata.uid;
  }

  #forget(uid: PodUid): void {
    this.#endWait(uid);
    this.#answers.delete(uid);
    this.#sent.delete(uid);
    this.#retries.get(uid)?.timer?.cancel();
    this.#retries.delete(uid);
  }
}

/** Whether a patch says nothing but which generation was seen. */
function isOnlyGeneration(patch: Readonly<Record<string, unknown>>): boolean {
  const { conditions = [], observedGeneration: _seen, [CONDITION_ORDER]: _order, ...rest } = patch['status'] as Patched;
  return (
    Object.keys(rest).length === 0 &&
    conditions.every((c) => Object.keys(c).every((key) => key === 'type' || key === 'observedGeneration'))
  );
}

const CONDITION_ORDER = '$setElementOrder/conditions';
type Patched = {
  readonly conditions?: readonly object[];
  readonly observedGeneration?: number;
  [CONDITION_ORDER]?: unknown;
};

const versionOf = (pod: Pod | undefined): number => Number(pod?.metadata.resourceVersion ?? 0);
