// `started` and `ready` of a running container, from its probes and from what was said before. Pure.
import type { ContainerStatus } from '../core/pod.ts';

export type ProbeVerdict = 'success' | 'failure' | 'unknown';

/** What the probes know, by container. Containers without such a probe have no worker. */
export interface ProbeState {
  startup(containerId: string): ProbeVerdict | undefined;
  readiness(containerId: string): ProbeVerdict | undefined;
  hasStartupProbe(container: string): boolean;
  hasReadinessProbe(container: string): boolean;
}

/** `old` is the last status of the container with that name; it carries state over an agent restart. */
export function readinessOf(
  status: ContainerStatus,
  old: ContainerStatus | undefined,
  probes: ProbeState,
): Pick<ContainerStatus, 'ready' | 'started'> {
  const id = bareId(status.containerID);
  if (status.state.running === undefined || id === undefined) return { ready: false, started: false };
  const started = isStarted(status.name, id, old, probes);
  return { started, ready: started && isReady(status, id, old, probes) };
}

/** The runtime's own id, without the `containerd://` in front. */
export const bareId = (containerID: string | undefined): string | undefined =>
  containerID === undefined ? undefined : containerID.slice(containerID.indexOf('://') + 3);

function isStarted(name: string, id: string, old: ContainerStatus | undefined, probes: ProbeState): boolean {
  const result = probes.startup(id);
  if (result !== undefined) return result === 'success';
  if (!probes.hasStartupProbe(name)) return true;
  return old?.started === true;
}

function isReady(status: ContainerStatus, id: string, old: ContainerStatus | undefined, probes: ProbeState): boolean {
  const result = probes.readiness(id);
  if (result !== undefined) return result === 'success';
  if (!probes.hasReadinessProbe(status.name)) return true;
  return old?.containerID === status.containerID && old?.ready === true;
}
