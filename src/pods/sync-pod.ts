// One pass over a pod that should run: say how it is, get its surroundings ready, let the runtime do what is missing.
import type { EventRecorder } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import { hasEnded } from '../core/phase.ts';
import { isStaticPod, uidOf, type Pod } from '../core/pod.ts';
import { isRestartingAll, runsOnce } from '../core/restart-policy.ts';
import {
  hasReadySandbox,
  hasRunningContainers,
  type JustDone,
  type MadePod,
  type PodSnapshot,
} from '../core/snapshot.ts';
import { rejectedFor } from '../core/rejection.ts';
import { parseTimeMs } from '../core/time.ts';
import { childScope } from '../lib/abort.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { PodStatusWriter } from './pod-status-writer.ts';
import { rejectPod, type RejectPodDeps } from './reject-pod.ts';
import type { StartErrors } from './start-errors.ts';

export type RuntimeSyncResult = {
  /** Something was created, started, stopped or removed: the pod must be observed again. */
  readonly acted: boolean;
  /** When that was nothing but a new sandbox and containers in it. */
  readonly made?: MadePod;
  /** Per container: why it could not be started, or undefined when it was. */
  readonly startErrors: ReadonlyMap<string, { readonly reason: string; readonly message: string } | undefined>;
  /** Monotonic moment at which the earliest back-off ends. */
  readonly retryAt?: number;
  /** The first thing that went wrong, container starts included. */
  readonly failure?: Error;
};

export type SyncPodDeps = {
  readonly observed: {
    get(uid: PodUid): PodSnapshot | undefined;
    refresh(uid: PodUid, signal: AbortSignal, done?: JustDone): Promise<PodSnapshot | undefined>;
    /** Until the end that it returns, starts in this pod are seen by a refresh of ours; `unseen` when there was none. */
    beginMutation(uid: PodUid, foreseen: 'started'): (unseen: boolean) => void;
    /** Whether something was done to this pod that no read has seen. */
    isOutdated(uid: PodUid): boolean;
  };
  readonly status: PodStatusWriter;
  readonly startErrors: StartErrors;
  readonly prerequisites: PodPrerequisites;
  readonly runtime: PodRuntimePort;
  readonly turns: Turns;
  /** For pods found running after a start of the agent: a new pod does not wait until hundreds of them are looked after. */
  readonly adoptions: Pick<Turns, 'run'>;
  readonly events: EventRecorder;
  /** For a pod that turned out to be impossible here. */
  readonly rejecting: RejectPodDeps;
  readonly clock: Clock;
};

/** Orders the beginnings of pods; StartTurns fits. */
export interface Turns {
  /** How many pods wait for theirs. */
  readonly waiting: number;
  run<T>(signal: AbortSignal, start: (turn: Turn) => Promise<T>): Promise<T>;
}

/** One pod's turn: for as long as it works. */
export interface Turn {
  /** From here on it only waits for somebody else: the next may begin. */
  leave(): void;
  /** Goes on with work, after the turn was left in a new one at the pod's old place in line. */
  resume<T>(work: (turn: Turn) => Promise<T>): Promise<T>;
}

/** What a pod needs around it before its containers can run. */
export interface PodPrerequisites {
  /** A static pod that runs already waits for its mirror pod, for a moment at the start of the agent. */
  awaitMirror(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Why pods with their own network cannot start now; undefined when they can. */
  networkProblem(): string | undefined;
  /** Begins to keep the objects (secrets, config maps) this pod refers to at hand. */
  registerObjects(pod: Pod): void;
  cgroupExists(pod: Pod, signal: AbortSignal): Promise<boolean>;
  /** `isThere`: it was just seen to exist. */
  ensureCgroup(pod: Pod, signal: AbortSignal, isThere?: boolean): Promise<void>;
  /** Brings the API server's picture of a static pod up to date, in the background, again and again until it is. */
  keepMirror(pod: Pod): void;
  ensureDirectories(pod: Pod): Promise<void>;
  mountVolumes(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Resolves when a volume of the pod failed, or waits for a controller: it will take its time. */
  volumesBlocked(pod: Pod, signal: AbortSignal): Promise<void>;
  addProbes(pod: Pod): void;
}

export type RuntimeSyncOptions = {
  /** Called as soon as a new sandbox is up, before any container. */
  readonly onSandboxReady: () => void;
  /** Called when the runtime has nothing to do for the pod for now: a hook, a pull or an end is waited for. */
  readonly onWaiting: () => void;
  /** The pod's status says that all its containers start over. */
  readonly restartingAll: boolean;
};

export interface PodRuntimePort {
  sync(
    pod: Pod,
    snapshot: PodSnapshot | undefined,
    options: RuntimeSyncOptions,
    signal: AbortSignal,
  ): Promise<RuntimeSyncResult>;
  kill(pod: Pod, snapshot: PodSnapshot, options: KillOptions, signal: AbortSignal): Promise<void>;
}

export type KillOptions = {
  /** Instead of the pod's own. */
  readonly graceSeconds?: number;
  /** Called when no container can be running any more, while the sandbox still has to be stopped. */
  readonly onContainersStopped?: () => void;
};

/** One pass: the pod, how it was seen, and what its status just said. */
type Pass = {
  readonly pod: Pod;
  readonly snapshot: PodSnapshot | undefined;
  readonly restartingAll: boolean;
  /** The first one over this pod since the agent started. */
  readonly first: boolean;
};

const NETWORK_RETRY_MS = 1000;
/** Cgroup, directories and volumes are ready well before this, unless somebody else is waited for. */
const PREPARATION_MS = 250;
/** Of a pod that is there already. */
const NO_TURN: Turn = { leave: () => undefined, resume: (work) => work(NO_TURN) };
/** In a crowd most pods are Ready before this, and say so in the same update. */
const CROWDED_SANDBOX_READY_MS = 1000;

export class SyncPod {
  readonly #deps: SyncPodDeps;

  constructor(deps: SyncPodDeps) {
    this.#deps = deps;
  }

  async sync(pod: Pod, signal: AbortSignal): Promise<{ terminal: boolean; retryAt?: number }> {
    const { status, prerequisites } = this.#deps;
    await prerequisites.awaitMirror(pod, signal);
    const uid = uidOf(pod);
    const snapshot = await this.#seen(pod, signal);
    const first = !status.hasWritten(uid);
    const written = await status.write(pod, snapshot);
    if (hasEnded(written)) return { terminal: true };
    const pass = { pod, snapshot, restartingAll: isRestartingAll(written), first };
    const outcome = await this.#bringAbout(pass, signal).catch((err: unknown) => this.#rejected(pod, err));
    if (outcome === undefined) return { terminal: true };
    const deadline = this.dueAt(pod);
    const retryAt = [outcome.retryAt, deadline].filter((at) => at !== undefined);
    return { terminal: false, ...(retryAt.length > 0 ? { retryAt: Math.min(...retryAt) } : {}) };
  }

  async #seen(pod: Pod, signal: AbortSignal): Promise<PodSnapshot | undefined> {
    const { observed } = this.#deps;
    const uid = uidOf(pod);
    try {
      // Acting on what was true before the last try would start a second instance beside the first.
      if (observed.isOutdated(uid)) await observed.refresh(uid, signal);
      const snapshot = observed.get(uid);
      if (snapshot?.partial !== true) return snapshot;
      throw new KubeletError('unavailable', 'the runtime lists this pod but cannot describe it');
    } catch (err) {
      this.#explain(pod, signal, 'FailedSync', `error determining status: ${messageOf(err)}`);
      throw err;
    }
  }

  #rejected(pod: Pod, err: unknown): undefined {
    const reason = rejectedFor(err);
    if (reason === undefined) throw err;
    rejectPod(this.#deps.rejecting, pod, reason, messageOf(err));
  }

  /** The monotonic moment at which `activeDeadlineSeconds` is over. */
  dueAt(pod: Pod): number | undefined {
    const { clock, status } = this.#deps;
    const { activeDeadlineSeconds } = pod.spec;
    const { startTime } = activeDeadlineSeconds === undefined ? {} : status.last(pod);
    if (activeDeadlineSeconds === undefined || startTime === undefined) return undefined;
    const endMs = parseTimeMs(startTime) + activeDeadlineSeconds * 1000;
    return clock.monotonic() + Math.max(0, endMs - clock.now());
  }

  async #bringAbout(pass: Pass, signal: AbortSignal): Promise<{ retryAt?: number }> {
    const { prerequisites, turns, adoptions, clock } = this.#deps;
    const { pod, snapshot } = pass;
    const problem = pod.spec.hostNetwork === true ? undefined : prerequisites.networkProblem();
    if (problem !== undefined) {
      this.#deps.events.pod(pod, 'Warning', 'NetworkNotReady', `network is not ready: ${problem}`);
      return { retryAt: clock.monotonic() + NETWORK_RETRY_MS * (1 + 0.5 * clock.random()) };
    }
    prerequisites.registerObjects(pod);
    const start = (turn: Turn): Promise<{ retryAt?: number }> => this.#start(pass, turn, signal);
    if (snapshot === undefined || !hasReadySandbox(snapshot)) return turns.run(signal, start);
    return pass.first ? adoptions.run(signal, start) : start(NO_TURN);
  }

  async #start(pass: Pass, turn: Turn, signal: AbortSignal): Promise<{ retryAt?: number }> {
    if (await this.#prepare(pass, turn, signal)) return { retryAt: 0 };
    return turn.resume((again) => {
      this.#deps.prerequisites.addProbes(pass.pod);
      return this.#runtime(pass, again, signal);
    });
  }

  /**
   * Cgroup, directories and volumes, side by side. Settles when all of it has settled: after a failure or a deletion the
   * worker goes on to the pod's end, which takes back what is made here. True when the pod had to be killed first.
   */
  async #prepare(pass: Pass, turn: Turn, signal: AbortSignal): Promise<boolean> {
    const late = this.#deps.clock.after(PREPARATION_MS, turn.leave);
    const scope = childScope(signal);
    const rest = this.#prepareRest(pass.pod, turn, scope.signal);
    rest.catch(() => undefined); // told below, unless the cgroup's failure comes first
    try {
      if (await this.#prepareCgroup(pass, signal)) return true;
      await rest;
      return false;
    } finally {
      late.cancel();
      scope.abort();
      await Promise.allSettled([rest]);
      scope.release();
    }
  }

  /** True when the pod had to be killed first because it ran outside its cgroup. */
  async #prepareCgroup({ pod, snapshot }: Pass, signal: AbortSignal): Promise<boolean> {
    const { prerequisites, runtime, observed } = this.#deps;
    try {
      const mustBeThere = snapshot !== undefined && hasRunningContainers(snapshot);
      if (mustBeThere && !(await prerequisites.cgroupExists(pod, signal))) {
        await runtime.kill(pod, snapshot, {}, signal);
        await observed.refresh(uidOf(pod), signal);
        if (!runsOnce(pod)) await prerequisites.ensureCgroup(pod, signal);
        return true;
      }
      await prerequisites.ensureCgroup(pod, signal, mustBeThere);
      return false;
    } catch (err) {
      this.#explain(
        pod,
        signal,
        'FailedCreatePodContainer',
        `unable to ensure pod container exists: ${messageOf(err)}`,
      );
      throw err;
    }
  }

  async #prepareRest(pod: Pod, turn: Turn, signal: AbortSignal): Promise<void> {
    const { prerequisites } = this.#deps;
    // The mirror pod is for others to see; the pod itself does not wait for the API server.
    if (isStaticPod(pod)) prerequisites.keepMirror(pod);
    try {
      await prerequisites.ensureDirectories(pod);
    } catch (err) {
      this.#explain(pod, signal, 'Failed', `error making pod data directories: ${messageOf(err)}`);
      throw err;
    }
    signal.throwIfAborted();
    try {
      await this.#mountVolumes(pod, turn, signal);
    } catch (err) {
      if (rejectedFor(err) !== undefined) throw err;
      this.#explain(pod, signal, 'FailedMount', `Unable to attach or mount volumes: ${messageOf(err)}`);
      throw err;
    }
  }

  /** A volume that is waited for keeps nobody else from starting. */
  async #mountVolumes(pod: Pod, turn: Turn, signal: AbortSignal): Promise<void> {
    const { prerequisites } = this.#deps;
    const mounted = prerequisites.mountVolumes(pod, signal);
    if (turn === NO_TURN) return mounted;
    const scope = childScope(signal);
    prerequisites.volumesBlocked(pod, scope.signal).then(turn.leave, () => undefined);
    try {
      await mounted;
    } finally {
      scope.abort();
      scope.release();
    }
  }

  async #runtime(
    { pod, snapshot, restartingAll }: Pass,
    turn: Turn,
    signal: AbortSignal,
  ): Promise<{ retryAt?: number }> {
    const { observed, runtime, startErrors, status, turns, clock } = this.#deps;
    const uid = uidOf(pod);
    const later: Timer[] = [];
    const onSandboxReady = (): void => {
      if (turns.waiting === 0) status.sandboxReady(pod);
      else later.push(clock.after(CROWDED_SANDBOX_READY_MS, () => status.sandboxReady(pod)));
    };
    const endMutation = observed.beginMutation(uid, 'started');
    let result: RuntimeSyncResult;
    let unseen = true;
    try {
      const options = { onSandboxReady, onWaiting: turn.leave, restartingAll };
      result = await runtime.sync(pod, snapshot, options, signal);
      for (const [container, error] of result.startErrors) {
        if (error === undefined) startErrors.clear(uid, container);
        else startErrors.set(uid, container, error);
      }
      if (result.acted) await observed.refresh(uid, signal, result.made && { made: result.made });
      unseen = false;
    } finally {
      endMutation(unseen);
      for (const timer of later) timer.cancel();
    }
    if (result.failure !== undefined && result.retryAt === undefined) throw result.failure;
    return result.retryAt === undefined ? {} : { retryAt: result.retryAt };
  }

  #explain(pod: Pod, signal: AbortSignal, reason: string, message: string): void {
    if (!signal.aborted) this.#deps.events.pod(pod, 'Warning', reason, message);
  }
}
