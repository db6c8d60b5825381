// One worker per pod UID. Everything that happens to a pod on this node happens here, one thing at a time per pod and
// side by side across pods. Woken by sources, runtime, probes, volumes and its own timers.
import type { PodUid } from '../core/ids.ts';
import { hasEnded } from '../core/phase.ts';
import { fullName, isStaticPod, podKey, uidOf, type Pod } from '../core/pod.ts';
import { childScope, type Scope } from '../lib/abort.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import { KeyedRunner } from '../lib/keyed-runner.ts';
import type { Logger } from '../lib/logger.ts';
import { StaticNames } from './static-names.ts';
import {
  endedState,
  graceFor,
  initialState,
  next,
  type PodStopRequest,
  type WorkerEvent,
  type WorkerState,
} from './worker-state.ts';

/** What a worker does in each state. Every step may be repeated after a crash or a failure. */
export interface WorkerSteps {
  /** `retryAt` is the monotonic moment a back-off ends; `terminal` that nothing is left to run. */
  sync(pod: Pod, signal: AbortSignal): Promise<{ readonly terminal: boolean; readonly retryAt?: number }>;
  /** The monotonic moment at which the pod's `activeDeadlineSeconds` are over, also where its syncs fail. */
  dueAt(pod: Pod): number | undefined;
  terminate(target: WorkerTarget, state: WorkerState & { phase: 'terminating' }, signal: AbortSignal): Promise<void>;
  finish(target: WorkerTarget, signal: AbortSignal): Promise<void>;
}

/** The three steps as one; SyncPod, TerminatePod and FinishPod fit. */
export const workerSteps = (
  sync: Pick<WorkerSteps, 'sync' | 'dueAt'>,
  terminate: Pick<WorkerSteps, 'terminate'>,
  finish: Pick<WorkerSteps, 'finish'>,
): WorkerSteps => ({
  sync: (pod, signal) => sync.sync(pod, signal),
  dueAt: (pod) => sync.dueAt(pod),
  terminate: (target, state, signal) => terminate.terminate(target, state, signal),
  finish: (target, signal) => finish.finish(target, signal),
});

/** A pod with its spec, or one that only the runtime knows. */
export type WorkerTarget = { readonly uid: PodUid; readonly pod: Pod | undefined };

export type PodWorkersDeps = {
  readonly steps: WorkerSteps;
  readonly desired: { get(uid: PodUid): Pod | undefined };
  /** Whether the runtime has anything alive for this pod. */
  readonly isAlive: (uid: PodUid) => boolean;
  /** The pod's containers are stopped for good: its final phase may be shown. */
  readonly onTerminated: (uid: PodUid) => void;
  /** A worker came to its end: what is left of its pod can be cleared away. */
  readonly onFinished: (uid: PodUid) => void;
  /** A pod whose UID came back while it was being stopped starts over. */
  readonly onRestarted?: (pod: Pod) => void;
  /** A finished worker was dropped: its pod is gone at the source. */
  readonly onForgotten?: (uid: PodUid) => void;
  readonly clock: Clock;
  readonly log: Logger;
};

export type PodWorkersOptions = { readonly syncFrequencyMs: number };

type Worker = {
  readonly uid: PodUid;
  pod: Pod | undefined;
  /** It stops what runs of a pod that this node refused: as the runtime has it, without touching the pod's status. */
  isRefused: boolean;
  state: WorkerState;
  /** The step under way; aborted when a stop request overtakes it. */
  step: Scope | undefined;
  timer: Timer | undefined;
  /** Monotonic: when the step under way began, and when the timer will ring. */
  stepSince: number | undefined;
  nextRun: number | undefined;
  /** Of the last steps, until one succeeds. */
  failure: { readonly message: string; readonly at: number; readonly attempts: number } | undefined;
  readonly onTerminated: (() => void)[];
};

/** A worker as people look at it. Wall times. */
export type WorkerView = {
  readonly uid: PodUid;
  readonly pod: Pod | undefined;
  readonly phase: WorkerState['phase'];
  /** Since when it is terminating or terminated. */
  readonly sinceMs?: number;
  readonly graceSeconds?: number;
  /** A step is under way since then. */
  readonly busySinceMs?: number;
  /** When it looks at the pod again if nothing wakes it before. */
  readonly nextRunMs?: number;
  readonly lastError?: { readonly message: string; readonly atMs: number; readonly attempts: number };
};

const RETRY_MS = 10_000;
const RETRY_JITTER = 0.5;

export class PodWorkers {
  readonly name = 'pod-workers';
  readonly #deps: PodWorkersDeps;
  readonly #options: PodWorkersOptions;
  readonly #workers = new Map<PodUid, Worker>();
  readonly #static = new StaticNames((uid) => this.wake(uid));
  readonly #runner = new KeyedRunner<PodUid>({ work: (uid) => this.#run(uid) });
  #signal: AbortSignal | undefined;

  constructor(deps: PodWorkersDeps, options: PodWorkersOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    for (const uid of this.#workers.keys()) this.#runner.wake(uid);
    await new Promise<void>((resolve) =>
      signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true }),
    );
    for (const worker of this.#workers.values()) {
      worker.timer?.cancel();
      worker.step?.abort(signal.reason);
    }
    await this.#runner.stop();
  }

  /** A source has a new pod. One that is still being stopped under the same UID starts over afterwards. */
  add(pod: Pod): void {
    const known = this.#workers.get(uidOf(pod));
    if (known !== undefined && pod.metadata.deletionTimestamp === undefined && !hasEnded(pod.status))
      this.#apply(known, { on: 'addedAgain' });
    this.ensure(pod);
  }

  /** Starts a worker for a pod, or reminds the one that is there. */
  ensure(pod: Pod): void {
    const uid = uidOf(pod);
    const known = this.#workers.get(uid);
    if (known === undefined) this.#workers.set(uid, this.#create(uid, pod));
    else if (pod.metadata.deletionTimestamp !== undefined) this.#overtaking(known, () => this.#absorb(known));
    this.wake(uid);
  }

  wake(uid: PodUid): void {
    if (this.#signal !== undefined && this.#workers.has(uid)) this.#runner.wake(uid);
  }

  wakeAll(): void {
    for (const uid of this.#workers.keys()) this.wake(uid);
  }

  /** Asks for a pod to be stopped. Requests add up: grace shrinks, evicted and deleted stick. */
  stop(uid: PodUid, request: PodStopRequest): void {
    let worker = this.#workers.get(uid);
    if (worker === undefined) this.#workers.set(uid, (worker = this.#create(uid, this.#deps.desired.get(uid))));
    const before = worker.state;
    this.#overtaking(worker, () => this.#request(worker, request));
    if (before !== worker.state) this.wake(uid);
  }

  /** What runs of a pod that this node refused is an orphan of the runtime. The worker goes with its containers. */
  stopRefused(uid: PodUid): void {
    if (this.#workers.has(uid)) return;
    this.#workers.set(uid, { ...this.#create(uid, undefined), isRefused: true });
    this.stop(uid, { deleted: true, graceSeconds: 1 });
  }

  /** A stop does not wait for the step under way: that may itself wait for a volume or an image that never comes. */
  #overtaking(worker: Worker, ask: () => void): void {
    const before = worker.state;
    ask();
    const after = worker.state;
    const began = before.phase === 'syncing' && after.phase !== 'syncing';
    const shrunk =
      before.phase === 'terminating' && after.phase === 'terminating' && after.graceSeconds < before.graceSeconds;
    if (began || shrunk) worker.step?.abort(new KubeletError('cancelled', 'the pod is being stopped'));
  }

  /** Resolves when the pod's containers are stopped for good. */
  async stopped(uid: PodUid, signal: AbortSignal): Promise<void> {
    const worker = this.#workers.get(uid);
    if (worker === undefined || worker.state.phase === 'terminated' || worker.state.phase === 'finished') return;
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => reject(new KubeletError('deadline', 'timeout waiting to kill pod'));
      signal.addEventListener('abort', onAbort, { once: true });
      worker.onTerminated.push(() => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      });
    });
  }

  stateOf(uid: PodUid): WorkerState | undefined {
    return this.#workers.get(uid)?.state;
  }

  podOf(uid: PodUid): Pod | undefined {
    return this.#workers.get(uid)?.pod;
  }

  uids(): readonly PodUid[] {
    return [...this.#workers.keys()];
  }

  /** What the worker is at, for people. */
  view(uid: PodUid): WorkerView | undefined {
    const worker = this.#workers.get(uid);
    if (worker === undefined) return undefined;
    const { state, stepSince, nextRun, failure } = worker;
    const { clock } = this.#deps;
    const wall = (at: number): number => clock.now() + (at - clock.monotonic());
    return {
      uid,
      pod: worker.pod,
      phase: state.phase,
      ...('since' in state ? { sinceMs: wall(state.since) } : {}),
      ...(state.phase === 'terminating' ? { graceSeconds: state.graceSeconds } : {}),
      ...(stepSince === undefined ? {} : { busySinceMs: wall(stepSince) }),
      ...(nextRun === undefined ? {} : { nextRunMs: wall(nextRun) }),
      ...(failure === undefined
        ? {}
        : { lastError: { message: failure.message, atMs: wall(failure.at), attempts: failure.attempts } }),
    };
  }

  /** Whether a static pod of this name is on the node and has not been stopped yet. */
  mayRunStatic(name: string): boolean {
    for (const { pod, state } of this.#workers.values())
      if (pod !== undefined && isStaticPod(pod) && fullName(pod) === name)
        if (state.phase === 'syncing' || state.phase === 'terminating') return true;
    return false;
  }

  /** Drops a worker that is finished once its pod is gone at the source. */
  forget(uid: PodUid): void {
    const worker = this.#workers.get(uid);
    if (worker === undefined || worker.state.phase !== 'finished') return;
    this.#drop(worker);
  }

  #drop(worker: Worker): void {
    worker.timer?.cancel();
    this.#workers.delete(worker.uid);
    this.#static.release(worker.uid);
    this.#deps.onForgotten?.(worker.uid);
  }

  /** Its pod is still there, and is refused as before. One that was deleted meanwhile has an end of its own. */
  #endRefused(worker: Worker): void {
    const pod = this.#deps.desired.get(worker.uid);
    if (pod === undefined) return;
    this.#drop(worker);
    if (pod.metadata.deletionTimestamp !== undefined) this.ensure(pod);
  }

  #create(uid: PodUid, pod: Pod | undefined): Worker {
    const over = pod !== undefined && hasEnded(pod.status) && !this.#deps.isAlive(uid);
    const deleted = pod?.metadata.deletionTimestamp !== undefined;
    const state = over ? endedState(deleted, this.#deps.clock.monotonic()) : initialState;
    const idle = { step: undefined, timer: undefined, stepSince: undefined, nextRun: undefined, failure: undefined };
    return { uid, pod, isRefused: false, state, ...idle, onTerminated: [] };
  }

  #apply(worker: Worker, event: WorkerEvent): void {
    const before = worker.state.phase;
    worker.state = next(worker.state, event, this.#deps.clock.monotonic());
    const after = worker.state.phase;
    if (before === after || after === 'terminating') return;
    for (const done of worker.onTerminated.splice(0)) done();
    this.#deps.onTerminated(worker.uid);
    if (after === 'terminated') return;
    this.#static.release(worker.uid);
    if (after === 'finished') {
      if (worker.isRefused) this.#endRefused(worker);
      this.#deps.onFinished(worker.uid);
    } else {
      worker.isRefused = false;
      worker.pod ??= this.#deps.desired.get(worker.uid);
      if (worker.pod !== undefined) this.#deps.onRestarted?.(worker.pod);
      this.wake(worker.uid);
    }
  }

  async #run(uid: PodUid): Promise<void> {
    const worker = this.#workers.get(uid);
    const root = this.#signal;
    if (worker === undefined || root === undefined || root.aborted) return;
    worker.timer?.cancel();
    worker.nextRun = undefined;
    const scope = childScope(root);
    let againMs: number | undefined;
    try {
      this.#absorb(worker);
      if (!this.#mayStart(worker)) return;
      worker.step = scope;
      worker.stepSince = this.#deps.clock.monotonic();
      againMs = await this.#step(worker, scope.signal);
      worker.failure = undefined;
    } catch (err) {
      if (!scope.signal.aborted) againMs = this.#failed(worker, err);
      else if (!root.aborted) againMs = 0;
    } finally {
      worker.step = undefined;
      worker.stepSince = undefined;
      scope.release();
    }
    if (againMs === undefined || root.aborted) return;
    worker.nextRun = this.#deps.clock.monotonic() + againMs;
    worker.timer = this.#deps.clock.after(againMs, () => this.wake(uid));
  }

  /** In how many milliseconds to try again. */
  #failed(worker: Worker, err: unknown): number {
    const { clock, log, steps } = this.#deps;
    const { uid, failure, state } = worker;
    const pod = worker.pod === undefined ? uid : podKey(worker.pod);
    log.error('pod step failed, will be tried again', { pod, uid, phase: state.phase, err });
    worker.failure = { message: messageOf(err), at: clock.monotonic(), attempts: (failure?.attempts ?? 0) + 1 };
    const retryMs = RETRY_MS * (1 + RETRY_JITTER * clock.random());
    const dueAt = state.phase === 'syncing' && worker.pod !== undefined ? steps.dueAt(worker.pod) : undefined;
    const dueMs = (dueAt ?? -Infinity) - clock.monotonic();
    return dueMs > 0 ? Math.min(retryMs, dueMs) : retryMs;
  }

  /** Does what the state asks for; says in how many milliseconds to look again, if at all. */
  async #step(worker: Worker, signal: AbortSignal): Promise<number | undefined> {
    const { clock, steps } = this.#deps;
    const state = worker.state;
    switch (state.phase) {
      case 'syncing': {
        if (worker.pod === undefined) return undefined;
        const outcome = await steps.sync(worker.pod, signal);
        if (outcome.terminal) {
          this.stop(worker.uid, {});
          return 0;
        }
        const resync = this.#options.syncFrequencyMs * (1 + RETRY_JITTER * clock.random());
        return outcome.retryAt === undefined
          ? resync
          : Math.max(0, Math.min(resync, outcome.retryAt - clock.monotonic()));
      }
      case 'terminating':
        await steps.terminate(worker, state, signal);
        this.#apply(worker, { on: 'containersStopped' });
        return 0;
      case 'terminated':
        await steps.finish(worker, signal);
        this.#apply(worker, { on: 'cleanedUp' });
        return undefined;
      case 'finished':
        return undefined;
      default:
        return state satisfies never;
    }
  }

  /** Re-reads the desired pod: a deletion or a final phase there is a stop request. One that is gone stays as last seen. */
  #absorb(worker: Worker): void {
    if (worker.isRefused) return;
    const pod = this.#deps.desired.get(worker.uid) ?? worker.pod;
    if (pod === undefined) return;
    worker.pod = pod;
    if (pod.metadata.deletionTimestamp !== undefined) this.#request(worker, { deleted: true });
    else if (hasEnded(pod.status)) this.#request(worker, {});
  }

  #request(worker: Worker, request: PodStopRequest): void {
    this.#apply(worker, { on: 'stop', request, graceSeconds: graceFor(worker.pod, request) });
  }

  /** Static pods of the same name run one after the other; one that was never started needs no stopping. */
  #mayStart(worker: Worker): boolean {
    const { pod } = worker;
    if (pod === undefined || !isStaticPod(pod)) return true;
    if (this.#static.claim(fullName(pod), worker.uid)) return true;
    if (worker.state.phase === 'syncing' || this.#deps.isAlive(worker.uid)) return this.#deps.isAlive(worker.uid);
    this.#apply(worker, { on: 'neverStarted' });
    return false;
  }
}
