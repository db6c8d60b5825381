// Stopping a whole pod: every running container side by side, then every sandbox.
import type { CriRuntime } from '../cri/services.ts';
import { findContainer, type Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { isFault } from '../lib/errors.ts';
import { fullErrorText } from '../lib/grpc/status.ts';
import { restoredContainer, restoredPod } from './labels.ts';
import { hasSidecars, StopOrder, type ContainerStopper } from './stop-container.ts';
import type { FailedAction } from './sync-result.ts';

export type StopPodRequest = {
  /** Undefined for a pod that only the runtime still knows; what is needed of it is read from its containers. */
  readonly pod: Pod | undefined;
  readonly snapshot: PodSnapshot;
  readonly graceOverrideSeconds?: number | undefined;
  /** Called when every container has stopped, while the sandboxes are still there. */
  readonly onContainersStopped?: (() => void) | undefined;
};
export type PodStopperDeps = { readonly cri: CriRuntime; readonly stopper: ContainerStopper };

export class PodStopper {
  readonly #deps: PodStopperDeps;

  constructor(deps: PodStopperDeps) {
    this.#deps = deps;
  }

  /** What failed; nothing when the pod is stopped. A container that would not stop is ended with its sandbox. */
  async stop(request: StopPodRequest, signal: AbortSignal): Promise<readonly FailedAction[]> {
    const failures = await this.#stopContainers(request, signal);
    signal.throwIfAborted();
    const sandboxes = this.#stopSandboxes(request.snapshot, signal);
    if (failures.length === 0 && !mayRunUnseen(request.snapshot)) request.onContainersStopped?.();
    return [...failures, ...(await sandboxes)];
  }

  async #stopContainers(request: StopPodRequest, signal: AbortSignal): Promise<FailedAction[]> {
    const { snapshot, graceOverrideSeconds } = request;
    // Oldest first, so that the events read in the order of the spec.
    const running = snapshot.containers.filter((c) => c.state === 'running').reverse();
    const pod = request.pod ?? restoredPod(snapshot.uid, snapshot.name, snapshot.namespace, running[0]);
    const order = hasSidecars(pod)
      ? new StopOrder(
          pod,
          running.map((c) => c.name),
        )
      : undefined;
    const stopped = await Promise.all(
      running.map(async (seen): Promise<FailedAction | undefined> => {
        const known = findContainer(pod, seen.name);
        try {
          await this.#deps.stopper.stop(
            {
              pod,
              container: known?.container ?? restoredContainer(seen),
              // Events take all containers of a pod that nobody knows for main ones.
              kind: request.pod === undefined ? 'main' : known?.kind,
              containerId: seen.id,
              podIps: snapshot.ips,
              ...(graceOverrideSeconds === undefined ? {} : { graceOverrideSeconds }),
              ...(order === undefined ? {} : { order }),
            },
            signal,
          );
          return undefined;
        } catch (cause) {
          const message = fullErrorText(cause);
          return { action: 'KillContainer', target: seen.name, reason: 'KillContainerError', message, cause };
        }
      }),
    );
    return stopped.filter((failure) => failure !== undefined);
  }

  async #stopSandboxes(snapshot: PodSnapshot, signal: AbortSignal): Promise<FailedAction[]> {
    const stopped = await Promise.all(
      snapshot.sandboxes.map(async ({ id }): Promise<FailedAction | undefined> => {
        try {
          await this.#deps.cri.stopPodSandbox({ podSandboxId: id }, signal);
          return undefined;
        } catch (cause) {
          if (isFault(cause, 'notFound')) return undefined;
          const message = fullErrorText(cause);
          return { action: 'KillPodSandbox', target: snapshot.uid, reason: 'KillPodSandboxError', message, cause };
        }
      }),
    );
    return stopped.filter((failure) => failure !== undefined);
  }
}

/**
 * The runtime lost track of a container, or may be just starting it for a call that was given up: its processes have ended
 * for sure only when the sandbox has.
 */
const mayRunUnseen = ({ containers }: PodSnapshot): boolean =>
  containers.some(({ state }) => state === 'unknown' || state === 'created');
