// The steps a plan is made of, and the questions both halves of the planner ask.
import type { ContainerId, SandboxId } from '../core/ids.ts';
import type { Container, ContainerKind, Pod } from '../core/pod.ts';
import type { Actuated } from '../core/pod-resources.ts';
import type { ObservedContainer, PodSnapshot } from '../core/snapshot.ts';
import { containerHash } from './container-hash.ts';
import { HASH } from './labels.ts';
import { changedResources, resizableContainers, restartsFor } from './resize-plan.ts';

export type ProbeResult = 'success' | 'failure' | 'unknown';
export interface ProbeResults {
  liveness(id: ContainerId): ProbeResult | undefined;
  startup(id: ContainerId): ProbeResult | undefined;
}

export type KillReason = 'startupProbe' | 'livenessProbe' | 'unknown' | 'changed' | 'resize' | 'superseded';
export type KillStep = {
  readonly do: 'killContainer';
  readonly id: ContainerId;
  readonly name: string;
  readonly kind: ContainerKind;
  readonly message: string;
  readonly reason: KillReason;
};
export type PodStep =
  /** Stops every container and sandbox of the pod. */
  | { readonly do: 'killPod' }
  | KillStep
  /** Ends it at once if it runs, then removes it. */
  | { readonly do: 'removeContainer'; readonly id: ContainerId; readonly name: string; readonly keepLogs: boolean }
  | { readonly do: 'createSandbox'; readonly attempt: number; readonly replaces: SandboxId | undefined }
  | { readonly do: 'resize'; readonly restarting: ReadonlySet<string> }
  | {
      readonly do: 'startContainer';
      readonly name: string;
      readonly kind: ContainerKind;
      /** When it cannot be started, nothing after it is. */
      readonly blocks: boolean;
      /** An instance that was created and, as it seems, never started. It goes first, or both might run. */
      readonly leftover?: ContainerId;
    };

export type PodPlan = {
  readonly steps: readonly PodStep[];
  /** The sandbox that is kept; undefined when one is to be made or there is none to use. */
  readonly sandboxId: SandboxId | undefined;
};

export type PlanInput = {
  readonly pod: Pod;
  readonly snapshot: PodSnapshot;
  readonly probes: ProbeResults;
  /** What is in force; absent where resize is not possible. */
  readonly actuated?: Actuated;
  /** A restart of all containers is under way (the pod's condition says so). */
  readonly restartingAll?: boolean;
};

export const killStep = (
  kind: ContainerKind,
  seen: ObservedContainer,
  message: string,
  reason: KillReason,
): KillStep => ({ do: 'killContainer', id: seen.id, name: seen.name, kind, message, reason });

/** A container without our hash was made by somebody else and is left alone. */
export const definitionChanged = (container: Container, seen: ObservedContainer): boolean =>
  seen.annotations[HASH] !== undefined && seen.annotations[HASH] !== containerHash(container);

export function needsResizeRestart(container: Container, { pod, actuated }: PlanInput): boolean {
  if (actuated === undefined || !resizableContainers(pod).includes(container)) return false;
  return restartsFor(container, changedResources(pod, container, actuated));
}
