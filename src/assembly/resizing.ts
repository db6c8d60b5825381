// In-place resize: what pods were granted, what is in force, and how the pod's cgroup follows.
import { join } from 'node:path';
import { updateProblem } from '../admission/pod-features.ts';
import { resizeChecks } from '../admission/resize-check.ts';
import type { PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { flushOnStop } from '../lib/flush-on-stop.ts';
import type { Runnable } from '../lib/supervise.ts';
import { AllocationState } from '../resources/allocation-state.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import { PodResizing } from '../resources/pod-resizing.ts';
import { resizeMetrics } from '../resources/resize-metrics.ts';
import { Resizes } from '../resources/resizes.ts';
import { ActuatedState } from '../runtime/actuated-state.ts';
import { maySwap } from '../runtime/linux-resources.ts';
import type { ResizeRecords } from '../runtime/needs.ts';
import { isResized, resizableContainers } from '../runtime/resize-plan.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import { declaredFeatures } from '../node/declared-features.ts';
import { swapFacts } from './pod-runtime.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export type Resizing = {
  readonly parts: readonly Runnable[];
  readonly resizes: Resizes;
  readonly records: ResizeRecords;
  readonly pods: PodResizing;
};

export type ResizingDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly cluster: ClusterPort;
  readonly cgroups: PodCgroups;
  readonly active: () => readonly Pod[];
  readonly wake: (uid: PodUid) => void;
};

export async function buildResizing({ base, edge, cluster, cgroups, active, wake }: ResizingDeps): Promise<Resizing> {
  const { clock, flags, config, gates } = base;
  const { events } = cluster;
  const log = base.log.child({ component: 'resize' });
  const allocations = new AllocationState({ clock, log }, { file: join(flags.rootDir, 'allocated_pods_state') });
  const actuated = new ActuatedState({ clock, log }, { file: join(flags.rootDir, 'actuated_pods_state') });
  const swap = swapFacts(base, edge);
  const check = resizeChecks(
    { node: () => cluster.node(), allocated: (pod) => allocations.allocated(pod) },
    {
      cpuManagerPolicy: config.cpuManagerPolicy,
      memoryManagerPolicy: config.memoryManagerPolicy,
      resizeExclusiveCpus: gates.enabled('InPlacePodVerticalScalingExclusiveCPUs'),
      resizeExclusiveMemory: gates.enabled('InPlacePodVerticalScalingExclusiveMemory'),
      usesSwap: (pod, container) => maySwap(pod, container, swap),
      podLevel: gates.enabled('InPlacePodLevelResourcesVerticalScaling'),
    },
  );
  const metrics = resizeMetrics(base.registry);
  const resizes = new Resizes({ allocations, active, check, wake, events, metrics, clock, log });
  await Promise.all([allocations.load(), actuated.load()]);
  return {
    parts: [resizes, flushOnStop('pod-resource-records', [allocations, actuated])],
    resizes,
    records: {
      actuatedOf: (uid) => actuated.of(uid),
      setActuated: (uid, container, resources) => actuated.set(uid, container, resources),
      setActuatedPod: (uid, resources) => actuated.setPod(uid, resources),
      writePod: (pod, key, value, signal) => cgroups.write(pod, key, value, signal),
      memoryUsageOf: (pod, signal) => cgroups.memoryUsageOf(pod, signal),
    },
    pods: new PodResizing({
      allocations,
      actuated,
      resizes,
      plan: { containers: resizableContainers, isResized },
      updateProblem: (before, now) => updateProblem(before, now, declaredFeatures(base.gates)),
      events,
    }),
  };
}
