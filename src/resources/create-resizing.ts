// Fits in-place resize together: what pods were granted, what is in force, and how the pod's cgroup follows.
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import type { EventRecorder } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { flushOnStop } from '../lib/flush-on-stop.ts';
import type { Runnable } from '../lib/supervise.ts';
import { AllocationState } from './allocation-state.ts';
import type { PodCgroups } from './pod-cgroups.ts';
import { PodResizing, type ActuatedRecords, type PodResizingDeps } from './pod-resizing.ts';
import { resizeMetrics } from './resize-metrics.ts';
import { Resizes, type ResizesDeps } from './resizes.ts';

export type ResizingDeps = Pick<PodResizingDeps, 'plan' | 'updateProblem'> & {
  /** What is in force (`actuated_pods_state`). */
  readonly actuated: ActuatedRecords & { load(): Promise<void>; close(): Promise<void> };
  /** Whether a resize fits, given what pods were granted. */
  readonly checkWith: (allocated: (pod: Pod) => Pod) => ResizesDeps['check'];
  readonly makeRoom: ResizesDeps['makeRoom'];
  readonly cgroups: Pick<PodCgroups, 'write' | 'memoryUsageOf'>;
  readonly active: () => readonly Pod[];
  readonly sourcesReady: () => boolean;
  readonly wake: (uid: PodUid) => void;
  readonly events: EventRecorder;
};

/** What the runtime reads and writes while it carries a resize out. */
export type ResizeRecords = {
  readonly actuatedOf: ActuatedRecords['of'];
  readonly setActuated: ActuatedRecords['set'];
  readonly setActuatedPod: ActuatedRecords['setPod'];
  readonly writePod: PodCgroups['write'];
  readonly memoryUsageOf: PodCgroups['memoryUsageOf'];
};

export type Resizing = {
  readonly parts: readonly Runnable[];
  readonly records: ResizeRecords;
  readonly pods: PodResizing;
};

export async function createResizing(env: Environment, deps: ResizingDeps): Promise<Resizing> {
  const { clock, flags, registry } = env;
  const { active, actuated, cgroups, events, makeRoom, plan, sourcesReady, updateProblem, wake } = deps;
  const log = env.log.child({ component: 'resize' });
  const allocations = new AllocationState({ clock, log }, { file: join(flags.rootDir, 'allocated_pods_state') });
  const check = deps.checkWith((pod) => allocations.allocated(pod));
  const metrics = resizeMetrics(registry);
  const resizes = new Resizes({
    allocations,
    active,
    sourcesReady,
    check,
    makeRoom,
    wake,
    events,
    metrics,
    clock,
    log,
  });
  await Promise.all([allocations.load(), actuated.load()]);
  return {
    parts: [resizes, flushOnStop('pod-resource-records', [allocations, actuated])],
    records: {
      actuatedOf: (uid) => actuated.of(uid),
      setActuated: (uid, container, resources) => actuated.set(uid, container, resources),
      setActuatedPod: (uid, resources) => actuated.setPod(uid, resources),
      writePod: (pod, key, value, signal) => cgroups.write(pod, key, value, signal),
      memoryUsageOf: (pod, signal) => cgroups.memoryUsageOf(pod, signal),
    },
    pods: new PodResizing({ allocations, actuated, resizes, plan, updateProblem, events }),
  };
}
