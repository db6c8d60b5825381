// What the collector needs of a runtime, on the CRI. A list too large to receive is asked for pod by pod instead.
import { containerId, podUid, sandboxId, type ContainerId, type SandboxId } from '../core/ids.ts';
import { CONTAINER_NAME, POD_NAME, POD_NAMESPACE, POD_UID } from '../core/runtime-labels.ts';
import type { ObservedState } from '../core/snapshot.ts';
import { ContainerState, PodSandboxState, type Container } from '../cri/gen/cri.ts';
import type { CriRuntime } from '../cri/services.ts';
import { isFault } from '../lib/errors.ts';
import type { GcContainer, GcSandbox } from './plan.ts';

export interface GarbageRuntime {
  /** `pods`: uids to ask for one by one when all at once are too many. */
  containers(pods: () => Promise<readonly string[]>, signal: AbortSignal): Promise<readonly GcContainer[]>;
  sandboxes(pods: () => Promise<readonly string[]>, signal: AbortSignal): Promise<readonly GcSandbox[]>;
  /** Undefined when there is no such container. */
  container(id: ContainerId, signal: AbortSignal): Promise<{ logPath: string; state: ObservedState } | undefined>;
  kill(id: ContainerId, signal: AbortSignal): Promise<void>;
  removeContainer(id: ContainerId, signal: AbortSignal): Promise<void>;
  removeSandbox(id: SandboxId, signal: AbortSignal): Promise<void>;
}

const STATES: Readonly<Record<ContainerState, ObservedState>> = {
  [ContainerState.CONTAINER_CREATED]: 'created',
  [ContainerState.CONTAINER_RUNNING]: 'running',
  [ContainerState.CONTAINER_EXITED]: 'exited',
  [ContainerState.CONTAINER_UNKNOWN]: 'unknown',
};

const containerOf = (c: Container): GcContainer => ({
  id: containerId(c.id),
  sandboxId: sandboxId(c.podSandboxId),
  podUid: podUid(c.labels[POD_UID] ?? ''),
  podName: c.labels[POD_NAME] ?? '',
  namespace: c.labels[POD_NAMESPACE] ?? '',
  name: c.labels[CONTAINER_NAME] ?? c.metadata?.name ?? '',
  state: STATES[c.state],
  attempt: c.metadata?.attempt ?? 0,
  createdAt: c.createdAt,
});

/** Told of every removal, so that nobody has to ask the runtime what became of it. */
export interface RemovalListener {
  whileRemoving(id: string, removal: Promise<void>): Promise<void>;
}

export function criGarbage(runtime: CriRuntime, listener: RemovalListener): GarbageRuntime {
  const whole = async <T>(
    list: (labelSelector: Record<string, string>) => Promise<readonly T[]>,
    pods: () => Promise<readonly string[]>,
  ): Promise<readonly T[]> => {
    try {
      return await list({});
    } catch (err) {
      if (!isFault(err, 'exhausted')) throw err;
      const all: T[] = [];
      for (const uid of await pods()) all.push(...(await list({ [POD_UID]: uid })));
      return all;
    }
  };
  const unlessGone = async (call: Promise<unknown>): Promise<void> => {
    try {
      await call;
    } catch (err) {
      if (!isFault(err, 'notFound')) throw err;
    }
  };
  return {
    containers: (pods, signal) =>
      whole(async (labelSelector) => {
        const { containers } = await runtime.listContainers({ filter: { labelSelector } }, signal);
        return containers.map(containerOf);
      }, pods),
    sandboxes: (pods, signal) =>
      whole(async (labelSelector) => {
        const { items } = await runtime.listPodSandbox({ filter: { labelSelector } }, signal);
        return items.map((s) => ({
          id: sandboxId(s.id),
          podUid: podUid(s.metadata?.uid ?? ''),
          ready: s.state === PodSandboxState.SANDBOX_READY,
          attempt: s.metadata?.attempt ?? 0,
          createdAt: s.createdAt,
        }));
      }, pods),
    container: async (id, signal) => {
      try {
        const { status } = await runtime.containerStatus({ containerId: id }, signal);
        return status === undefined ? undefined : { logPath: status.logPath, state: STATES[status.state] };
      } catch (err) {
        if (isFault(err, 'notFound')) return undefined;
        throw err;
      }
    },
    kill: (id, signal) => unlessGone(runtime.stopContainer({ containerId: id, timeout: 0 }, signal)),
    removeContainer: (id, signal) =>
      listener.whileRemoving(id, unlessGone(runtime.removeContainer({ containerId: id }, signal))),
    removeSandbox: async (id, signal) => {
      await unlessGone(runtime.stopPodSandbox({ podSandboxId: id }, signal));
      await listener.whileRemoving(id, unlessGone(runtime.removePodSandbox({ podSandboxId: id }, signal)));
    },
  };
}
