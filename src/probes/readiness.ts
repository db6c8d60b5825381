// `started` and `ready` of a container status, from probe results. Pure.
import type { ProbeResult } from './probe-state.ts';

/** What the probe manager knows about one container instance (`ProbeManager.factsOf`). */
export type ProbeFacts = {
  readonly startup: ProbeResult | undefined;
  readonly readiness: ProbeResult | undefined;
  readonly hasStartupProbe: boolean;
  readonly hasReadinessProbe: boolean;
  readonly olderThanKubelet: boolean;
};

export type ContainerBefore = {
  readonly running: boolean;
  /** `started` in the previous status of this instance; another one has its own startup before it. */
  readonly previouslyStarted: boolean;
  /** `ready` in the previous status of this instance; used only after a restart of the kubelet. */
  readonly previouslyReady: boolean;
};

export function isStarted({ running, previouslyStarted }: ContainerBefore, facts: ProbeFacts): boolean {
  if (!running) return false;
  if (facts.startup !== undefined) return facts.startup === 'success';
  return previouslyStarted || !facts.hasStartupProbe;
}

export function isContainerReady(before: ContainerBefore, started: boolean, facts: ProbeFacts): boolean {
  if (!before.running || !started) return false;
  if (facts.readiness === 'success' || !facts.hasReadinessProbe) return true;
  return facts.readiness === undefined && facts.olderThanKubelet && before.previouslyReady;
}
