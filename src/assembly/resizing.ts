// In-place resize: what pods were granted, what is in force, and how the pod's cgroup follows.
import { join } from 'node:path';
import { updateProblem } from '../admission/pod-features.ts';
import { checkResize, type ResizeOptions } from '../admission/resize-check.ts';
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod, type PodStatus } from '../core/pod.ts';
import { withPodLimits, type Actuated } from '../core/pod-resources.ts';
import { newestOf, type PodSnapshot } from '../core/snapshot.ts';
import { UNLIMITED } from '../host/cgroups/cgroups.ts';
import { aborted } from '../lib/abort.ts';
import type { Runnable } from '../lib/supervise.ts';
import { AllocationState } from '../resources/allocation-state.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import { resizeMetrics } from '../resources/resize-metrics.ts';
import { Resizes } from '../resources/resizes.ts';
import { ActuatedState } from '../runtime/actuated-state.ts';
import { maySwap } from '../runtime/linux-resources.ts';
import { isResized, resizableContainers } from '../runtime/resize-plan.ts';
import type { ResizeRecords } from '../runtime/needs.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import { declaredFeatures } from './node-reporting.ts';
import { swapFacts } from './pod-runtime.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export type Resizing = {
  readonly parts: readonly Runnable[];
  readonly resizes: Resizes;
  readonly records: ResizeRecords;
  load(): Promise<void>;
  /** The pod with the resources it was granted. */
  allocated<P extends Pod | undefined>(pod: P): P;
  /** A pod appeared or changed. */
  offer(pod: Pod, before: Pod | undefined): void;
  /** A pod was admitted: it gets what it asks for. */
  admitted(pod: Pod): void;
  /** The pod's cgroup was made, with what the pod was granted: later grants must be brought into it. */
  cgroupMade(pod: Pod): void;
  actuatedOf(uid: PodUid): Actuated;
  /** `over`: the containers are stopped for good. */
  withConditions(status: PodStatus, pod: Pod, over: boolean): PodStatus;
  /** What a sync of the pod did about its resize. */
  synced(pod: Pod, snapshot: PodSnapshot | undefined, error: string | undefined): void;
  keepOnly(alive: ReadonlySet<string>): void;
};

export type ResizingDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly cluster: ClusterPort;
  readonly cgroups: PodCgroups;
  readonly active: () => readonly Pod[];
  readonly wake: (uid: PodUid) => void;
};

export function buildResizing({ base, edge, cluster, cgroups, active, wake }: ResizingDeps): Resizing {
  const { clock, flags, config, gates } = base;
  const log = base.log.child({ component: 'resize' });
  const allocations = new AllocationState({ clock, log }, { file: join(flags.rootDir, 'allocated_pods_state') });
  const actuated = new ActuatedState({ clock, log }, { file: join(flags.rootDir, 'actuated_pods_state') });
  const swap = swapFacts(base, edge);
  const options: ResizeOptions = {
    cpuManagerPolicy: config.cpuManagerPolicy,
    memoryManagerPolicy: config.memoryManagerPolicy,
    usesSwap: (pod, container) => maySwap(pod, container, swap),
    podLevel: gates.enabled('InPlacePodLevelResourcesVerticalScaling'),
  };
  const check = (pod: Pod, others: readonly Pod[]): ReturnType<typeof checkResize> => {
    const node = cluster.node();
    if (node === undefined) return { ok: false, reason: 'Deferred', message: 'the node is not known yet' };
    return checkResize(pod, allocations.allocated(pod), others, node, options);
  };
  const metrics = resizeMetrics(base.registry);
  const resizes = new Resizes({ allocations, active, check, wake, events: cluster.events, metrics, clock, log });
  return {
    parts: [resizes, flushOnStop(allocations, actuated)],
    resizes,
    records: resizeRecords(actuated, cgroups, Math.round(config.cpuCFSQuotaPeriodMs * 1000)),
    load: async () => {
      await Promise.all([allocations.load(), actuated.load()]);
    },
    allocated: <P extends Pod | undefined>(pod: P): P => (pod === undefined ? pod : (allocations.allocated(pod) as P)),
    admitted: (pod) => {
      if (!allocations.has(uidOf(pod))) allocations.grant(pod);
    },
    offer: (pod, before) => {
      const problem = before === undefined ? undefined : updateProblem(before, pod, declaredFeatures(base));
      if (problem !== undefined) cluster.events.pod(pod, 'Warning', 'FailedNodeDeclaredFeaturesCheck', problem);
      resizes.offer(pod, before);
    },
    cgroupMade: (pod) => {
      const uid = uidOf(pod);
      if (!actuated.has(uid))
        for (const { name, resources } of resizableContainers(pod))
          actuated.set(uid, name, withPodLimits(resources, pod.spec.resources));
      if (pod.spec.resources !== undefined) actuated.setPod(uid, pod.spec.resources);
    },
    actuatedOf: (uid) => actuated.of(uid),
    withConditions: (status, pod, over) => {
      if (over) resizes.forget(uidOf(pod));
      return withResizeConditions(status, resizes.conditionsOf(uidOf(pod)));
    },
    synced: (pod, snapshot, error) => {
      if (error !== undefined) return resizes.failed(pod, error);
      const isRunning = (name: string): boolean =>
        snapshot !== undefined && newestOf(snapshot, name)?.state === 'running';
      resizes.progress(pod, actuated.has(uidOf(pod)) && isResized(pod, actuated.of(uidOf(pod)), isRunning));
    },
    keepOnly: (alive) => {
      resizes.retain(alive);
      allocations.retain(alive);
      actuated.retain(alive);
    },
  };
}

/** What changed just before the end is on disk at the end. */
const flushOnStop = (...records: readonly { flush(): Promise<void> }[]): Runnable => ({
  name: 'pod-resource-records',
  run: async (signal) => {
    await aborted(signal);
    await Promise.all(records.map((record) => record.flush()));
  },
});

const resizeRecords = (actuated: ActuatedState, cgroups: PodCgroups, cpuPeriodUs: number): ResizeRecords => ({
  actuatedOf: (uid) => actuated.of(uid),
  setActuated: (uid, container, resources) => actuated.set(uid, container, resources),
  setActuatedPod: (uid, resources) => actuated.setPod(uid, resources),
  writePod: (pod, key, value, signal) => {
    const limit = value === 0 ? UNLIMITED : value;
    const settings = {
      cpuShares: { cpuShares: value },
      cpuQuota: { cpuQuotaUs: limit, cpuPeriodUs },
      memoryLimitBytes: { memoryBytes: limit },
    };
    return cgroups.update(pod, signal, settings[key]);
  },
  memoryUsageOf: async (pod, signal) => {
    const { memoryUsageBytes } = await cgroups.read(pod, signal);
    return memoryUsageBytes === undefined ? undefined : Number(memoryUsageBytes);
  },
});

/** Pending and running resizes stand where upstream lists them: behind foreign conditions, before the pod's own. */
function withResizeConditions(status: PodStatus, conditions: ReturnType<Resizes['conditionsOf']>): PodStatus {
  const rest = (status.conditions ?? []).filter((c) => !c.type.startsWith('PodResize'));
  const at = rest.findIndex((c) => c.type === 'PodReadyToStartContainers');
  const before = at < 0 ? rest.length : at;
  return { ...status, conditions: [...rest.slice(0, before), ...conditions, ...rest.slice(before)] };
}
