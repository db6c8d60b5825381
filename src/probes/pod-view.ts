// What a probe worker needs to know about its pod, out of the pod and its last computed status. Pure.
import { hasEnded } from '../core/phase.ts';
import { isSidecar, type Container, type Pod, type PodStatus } from '../core/pod.ts';
import { parseTimeMs } from '../core/time.ts';
import type { PodView } from './probe-state.ts';

/** `containerd://abc` → `abc`. */
const bareContainerId = (id: string | undefined): string | undefined => {
  const bare = id === undefined ? '' : id.replace(/^[^:]*:\/\//, '');
  return bare === '' ? undefined : bare;
};

/** It was running under the previous kubelet. */
export const isOlderThanKubelet = (containerStartedMs: number, kubeletStartedMs: number): boolean =>
  containerStartedMs > 0 && containerStartedMs < kubeletStartedMs;

export type ViewOptions = {
  readonly kubeletStartedMs: number;
  /** To the millisecond, where known: statuses show whole seconds, which would end an initial delay too early. */
  readonly startedAt: (containerId: string) => number | undefined;
};

export function viewOf(pod: Pod, container: Container, status: PodStatus, o: ViewOptions): PodView {
  const all = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];
  const own = all.find((c) => c.name === container.name);
  const id = bareContainerId(own?.containerID);
  const exact = id === undefined ? undefined : o.startedAt(id);
  const startedAtMs = exact ?? parseTimeMs(own?.state.running?.startedAt);
  return {
    over: hasEnded(status),
    beingDeleted: pod.metadata.deletionTimestamp !== undefined,
    container:
      own === undefined
        ? undefined
        : {
            containerId: id,
            running: own.state.running !== undefined,
            terminated: own.state.terminated !== undefined,
            mayRestart: mayRestart(pod, container),
            startedAtMs,
            started: own.started === true,
            sidecar: isSidecar(container) && (pod.spec.initContainers ?? []).some((c) => c.name === container.name),
            olderThanKubelet: isOlderThanKubelet(startedAtMs, o.kubeletStartedMs),
          },
  };
}

const mayRestart = (pod: Pod, container: Container): boolean =>
  (container.restartPolicy ?? pod.spec.restartPolicy ?? 'Always') !== 'Never' ||
  (container.restartPolicyRules?.length ?? 0) > 0;
