// In-place resize: what pods were granted, what is in force, and how the pod's cgroup follows.
import { join } from 'node:path';
import { checkResize } from '../admission/resize-check.ts';
import type { PodUid } from '../core/ids.ts';
import type { Container, Pod, PodStatus, ResourceRequirements } from '../core/pod.ts';
import { uidOf } from '../core/pod.ts';
import { newestOf, type PodSnapshot } from '../core/snapshot.ts';
import type { CgroupSettings } from '../host/cgroups/cgroups.ts';
import type { Runnable } from '../lib/supervise.ts';
import { AllocationState } from '../resources/allocation-state.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import { Resizes } from '../resources/resizes.ts';
import { ActuatedState } from '../runtime/actuated-state.ts';
import { changedResources, resizableContainers } from '../runtime/resize-plan.ts';
import type { ResizeRecords } from '../runtime/needs.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';

export type Resizing = {
  readonly parts: readonly Runnable[];
  readonly resizes: Resizes;
  readonly records: ResizeRecords;
  load(): Promise<void>;
  /** The pod with the resources it was granted. */
  allocated<P extends Pod | undefined>(pod: P): P;
  /** A pod was admitted: it gets what it asks for. */
  admitted(pod: Pod): void;
  actuatedOf(uid: PodUid, container: string): ResourceRequirements | undefined;
  withConditions(status: PodStatus, pod: Pod): PodStatus;
  /** What a sync of the pod did about its resize. */
  synced(pod: Pod, snapshot: PodSnapshot | undefined, error: string | undefined): void;
  retain(alive: ReadonlySet<string>): void;
};

export type ResizingDeps = {
  readonly base: Foundation;
  readonly cluster: ClusterPort;
  readonly cgroups: PodCgroups;
  readonly active: () => readonly Pod[];
  readonly wake: (uid: PodUid) => void;
};

export function buildResizing({ base, cluster, cgroups, active, wake }: ResizingDeps): Resizing {
  const { clock, flags, config } = base;
  const log = base.log.child({ component: 'resize' });
  const allocations = new AllocationState({ log }, { file: join(flags.rootDir, 'allocated_pods_state') });
  const actuated = new ActuatedState({ log }, { file: join(flags.rootDir, 'actuated_pods_state') });
  const check = (pod: Pod, others: readonly Pod[]): ReturnType<typeof checkResize> => {
    const node = cluster.node();
    if (node === undefined) return { ok: false, reason: 'Deferred', message: 'the node is not known yet' };
    const options = {
      cpuManagerPolicy: config.cpuManagerPolicy,
      memoryManagerPolicy: config.memoryManagerPolicy,
      usesSwap: () => false,
    };
    return checkResize(pod, others, node, options);
  };
  const resizes = new Resizes({ allocations, active, check, wake, events: cluster.events, clock, log });
  return {
    parts: [resizes],
    resizes,
    records: resizeRecords(actuated, cgroups),
    load: async () => {
      await Promise.all([allocations.load(), actuated.load()]);
    },
    allocated: <P extends Pod | undefined>(pod: P): P => (pod === undefined ? pod : (allocations.allocated(pod) as P)),
    admitted: (pod) => {
      if (!allocations.has(uidOf(pod))) allocations.grant(pod);
    },
    actuatedOf: (uid, container) => actuated.of(uid).get(container),
    withConditions: (status, pod) => withResizeConditions(status, resizes.conditionsOf(uidOf(pod))),
    synced: (pod, snapshot, error) => {
      if (error !== undefined) return resizes.failed(pod, error);
      const inForce = actuated.of(uidOf(pod));
      const isRunning = (name: string): boolean =>
        snapshot !== undefined && newestOf(snapshot, name)?.state === 'running';
      const differs = (c: Container): boolean => {
        const was = inForce.get(c.name);
        return was !== undefined && isRunning(c.name) && changedResources(c, was).length > 0;
      };
      resizes.progress(pod, resizableContainers(pod).some(differs));
    },
    retain: (alive) => {
      allocations.retain(alive);
      actuated.retain(alive);
    },
  };
}

const FIELD = { cpuShares: 'cpuShares', cpuQuota: 'cpuQuotaUs', memoryLimitBytes: 'memoryBytes' } as const;

const resizeRecords = (actuated: ActuatedState, cgroups: PodCgroups): ResizeRecords => ({
  actuatedOf: (uid) => actuated.of(uid),
  setActuated: (uid, container, resources) => actuated.set(uid, container, resources),
  writePod: (pod, key, value, signal) => {
    const settings: CgroupSettings = { [FIELD[key as keyof typeof FIELD]]: value };
    return cgroups.update(pod, signal, settings);
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
