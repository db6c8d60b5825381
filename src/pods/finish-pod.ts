// The last steps after a pod's containers are stopped: volumes, cgroup and records go, then the status is closed.
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { PodStatusWriter } from './pod-status-writer.ts';
import type { WorkerTarget } from './pod-workers.ts';

export type FinishPodDeps = {
  readonly observed: { get(uid: PodUid): PodSnapshot | undefined };
  readonly status: PodStatusWriter;
  readonly cleanup: {
    /** Its containers are gone: nothing of it is to be mounted any more. */
    volumesUnwanted(uid: PodUid): void;
    waitUnmounted(uid: PodUid, signal: AbortSignal): Promise<void>;
    unregisterObjects(pod: Pod): void;
    destroyCgroup(pod: Pod | PodUid, signal: AbortSignal): Promise<void>;
    /** What the image puller remembers of the pod. */
    forgetImages(uid: PodUid): void;
    /** What the runtime remembers of the pod: its back-offs and its range of user ids. */
    forgetRuntime(uid: PodUid, pod: Pod | undefined): Promise<void>;
  };
  readonly store: { finish(pod: Pod): void };
};

export class FinishPod {
  readonly #deps: FinishPodDeps;

  constructor(deps: FinishPodDeps) {
    this.#deps = deps;
  }

  async finish(target: WorkerTarget, signal: AbortSignal): Promise<void> {
    const { observed, status, cleanup, store } = this.#deps;
    const { uid, pod } = target;
    if (pod !== undefined) await status.write(pod, observed.get(uid), { terminal: true });
    cleanup.volumesUnwanted(uid);
    await cleanup.waitUnmounted(uid, signal);
    if (pod !== undefined) cleanup.unregisterObjects(pod);
    await cleanup.destroyCgroup(pod ?? uid, signal);
    cleanup.forgetImages(uid);
    await cleanup.forgetRuntime(uid, pod);
    if (pod !== undefined) {
      store.finish(pod);
      status.forget(uidOf(pod));
    }
  }
}
