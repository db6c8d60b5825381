// Which pods end together, in which order, and how long they get. Pure.
import type { Pod } from '../core/pod.ts';

export type ShutdownConfig = {
  readonly shutdownGracePeriodMs: number;
  readonly shutdownGracePeriodCriticalPodsMs: number;
  readonly shutdownGracePeriodByPodPriority: readonly {
    readonly priority: number;
    readonly shutdownGracePeriodSeconds: number;
  }[];
};

/** Pods of this priority and more, up to the next group's. */
export type ShutdownGroup = { readonly priority: number; readonly seconds: number };

const CRITICAL_PRIORITY = 2_000_000_000;
const wholeSeconds = (ms: number): number => Math.trunc(ms / 1000);

/** From low to high priority; empty when shutdowns are not held up. */
export function shutdownGroups(config: ShutdownConfig): readonly ShutdownGroup[] {
  const { shutdownGracePeriodMs: total, shutdownGracePeriodCriticalPodsMs: critical } = config;
  if (config.shutdownGracePeriodByPodPriority.length > 0)
    return config.shutdownGracePeriodByPodPriority
      .map(({ priority, shutdownGracePeriodSeconds: seconds }) => ({ priority, seconds }))
      .toSorted((a, b) => a.priority - b.priority);
  if (total <= 0) return [];
  return [
    { priority: 0, seconds: wholeSeconds(total - critical) },
    { priority: CRITICAL_PRIORITY, seconds: wholeSeconds(critical) },
  ];
}

/** How long a shutdown is held up at most. */
export const totalSeconds = (groups: readonly ShutdownGroup[]): number => groups.reduce((sum, g) => sum + g.seconds, 0);

export type ShutdownStep = { readonly seconds: number; readonly pods: readonly Pod[] };

/** One step for each group that has pods. A pod below all groups belongs to the lowest. */
export function shutdownSteps(pods: readonly Pod[], groups: readonly ShutdownGroup[]): readonly ShutdownStep[] {
  const indexOf = ({ spec: { priority = 0 } }: Pod): number => {
    // Of groups with one priority the first takes the pods that have it, the last those above.
    const exact = groups.findIndex((g) => g.priority === priority);
    return exact >= 0
      ? exact
      : Math.max(
          0,
          groups.findLastIndex((g) => g.priority < priority),
        );
  };
  return groups
    .map(({ seconds }, index) => ({ seconds, pods: pods.filter((pod) => indexOf(pod) === index) }))
    .filter((step) => step.pods.length > 0);
}

export const graceSeconds = (pod: Pod, { seconds }: ShutdownStep): number =>
  Math.min(seconds, pod.spec.terminationGracePeriodSeconds ?? seconds);
