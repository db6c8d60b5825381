// Stops a pod's containers, once, with the grace it was given, and says so. Repeated until nothing runs any more.
import type { EventRecorder } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import type { JustDone, PodSnapshot } from '../core/snapshot.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { PodStatusWriter } from './pod-status-writer.ts';
import type { WorkerTarget } from './pod-workers.ts';
import type { KillOptions } from './sync-pod.ts';
import type { WorkerState } from './worker-state.ts';

/** Orders the ends of pods; StopTurns fits. */
export interface PodStops {
  run<T>(graceSeconds: number, signal: AbortSignal, stop: () => Promise<T>): Promise<T>;
}

export type TerminatePodDeps = {
  readonly observed: {
    get(uid: PodUid): PodSnapshot | undefined;
    refresh(uid: PodUid, signal: AbortSignal, done?: JustDone): Promise<PodSnapshot | undefined>;
    /** Until the end that it returns, what ends in this pod is seen by a refresh of ours; `unseen` when there was none. */
    beginMutation(uid: PodUid, foreseen: 'stopped'): (unseen: boolean) => void;
    isOutdated(uid: PodUid): boolean;
  };
  readonly status: PodStatusWriter;
  readonly probes: { stopLivenessAndStartup(uid: PodUid): void; removePod(uid: PodUid): void };
  readonly runtime: {
    /** `pod` is absent for what only the runtime knows. */
    kill(pod: Pod | undefined, snapshot: PodSnapshot, options: KillOptions, signal: AbortSignal): Promise<void>;
  };
  readonly stops: PodStops;
  /** Gives back what drivers prepared for the pod. */
  readonly unprepareClaims?: (pod: Pod, signal: AbortSignal) => Promise<void>;
  readonly events: EventRecorder;
};

/** A pod that is being stopped: `tell` writes its status, one at a time. */
type Ending = { readonly tell: () => Promise<unknown>; reported: Promise<unknown> };

export class TerminatePod {
  readonly #deps: TerminatePodDeps;
  readonly #ending = new Map<PodUid, Ending>();

  constructor(deps: TerminatePodDeps) {
    this.#deps = deps;
  }

  /** A readiness probe found something new: others stop sending work to a pod that takes its time to end. */
  probed(uid: PodUid): void {
    const ending = this.#ending.get(uid);
    if (ending !== undefined) ending.reported = ending.reported.then(ending.tell).catch(() => undefined); // its last status is told anyway
  }

  async terminate(
    target: WorkerTarget,
    state: WorkerState & { phase: 'terminating' },
    signal: AbortSignal,
  ): Promise<void> {
    const { observed, status, probes } = this.#deps;
    const { uid, pod } = target;
    const adjust = state.status === undefined ? {} : { adjust: state.status };
    const tell = async (): Promise<unknown> => pod && status.write(pod, observed.get(uid), adjust);
    await tell();
    probes.stopLivenessAndStartup(uid);
    const after = await this.#stop(target, state.graceSeconds, tell, signal);
    probes.removePod(uid);
    const running = after?.containers.filter((c) => c.state === 'running').map((c) => c.name) ?? [];
    if (running.length > 0)
      throw new KubeletError(
        'internal',
        `detected running containers after a successful KillPod, CRI violation: [${running.join(' ')}]`,
      );
    if (pod === undefined) return;
    // The final status lets others have the devices: it comes only when the drivers are through.
    await this.#deps.unprepareClaims?.(pod, signal);
    // Why it was stopped is in the status that was told before; how it ended is for its containers to say.
    await status.write(pod, after, { terminal: true });
  }

  /** Returns what is left of the pod when nothing of it runs. */
  async #stop(
    target: WorkerTarget,
    graceSeconds: number,
    tell: Ending['tell'],
    signal: AbortSignal,
  ): Promise<PodSnapshot | undefined> {
    const { uid } = target;
    const ending: Ending = { tell, reported: Promise.resolve() };
    this.#ending.set(uid, ending);
    try {
      return await this.#deps.stops.run(graceSeconds, signal, () => this.#stopInTurn(target, graceSeconds, signal));
    } finally {
      this.#ending.delete(uid);
      await ending.reported;
    }
  }

  async #stopInTurn(target: WorkerTarget, graceSeconds: number, signal: AbortSignal): Promise<PodSnapshot | undefined> {
    const { observed, events } = this.#deps;
    const { uid, pod } = target;
    const endMutation = observed.beginMutation(uid, 'stopped');
    let unseen = true;
    try {
      const snapshot = await this.#asItIs(uid, signal);
      await this.#kill(target, snapshot, graceSeconds, signal).catch((err: unknown) => {
        if (pod !== undefined && !signal.aborted)
          events.pod(pod, 'Warning', 'FailedKillPod', `error killing pod: ${messageOf(err)}`);
        throw err;
      });
      const after = await observed.refresh(uid, signal, 'stopped');
      unseen = false;
      return after;
    } finally {
      endMutation(unseen);
    }
  }

  /** A sync that was called off may have made something a moment ago; a pod that cannot be read is taken as last seen. */
  async #asItIs(uid: PodUid, signal: AbortSignal): Promise<PodSnapshot | undefined> {
    const { observed } = this.#deps;
    if (!observed.isOutdated(uid)) return observed.get(uid);
    try {
      return await observed.refresh(uid, signal);
    } catch {
      signal.throwIfAborted();
      return observed.get(uid);
    }
  }

  async #kill(
    target: WorkerTarget,
    snapshot: PodSnapshot | undefined,
    graceSeconds: number,
    signal: AbortSignal,
  ): Promise<void> {
    if (snapshot === undefined || snapshot.sandboxes.length + snapshot.containers.length === 0) return;
    const { observed, runtime } = this.#deps;
    const { uid, pod } = target;
    let read: Promise<unknown> | undefined;
    // How the containers ended is read while the runtime takes down the network. Volumes stay until the sandbox is gone: that of
    // a virtual machine may still hold them.
    const onContainersStopped = (): void => {
      read = observed.refresh(uid, signal, 'containersStopped').catch(() => undefined); // read again when all has stopped
    };
    const options = { graceSeconds: pod === undefined ? 1 : graceSeconds, onContainersStopped };
    try {
      await runtime.kill(pod, snapshot, options, signal);
    } finally {
      await read;
    }
  }
}
