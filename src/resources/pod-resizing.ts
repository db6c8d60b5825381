// A pod's resources on their way: granted at admission, offered when they change, carried out by the worker, shown in the
// status. Keeps grants (`allocated_pods_state`) and what is in force (`actuated_pods_state`) in step.
import type { EventRecorder } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod, type PodStatus, type ResourceRequirements } from '../core/pod.ts';
import { withPodLimits, type Actuated } from '../core/pod-resources.ts';
import { newestOf, type PodSnapshot } from '../core/snapshot.ts';
import type { AllocationState } from './allocation-state.ts';
import type { Resizes } from './resizes.ts';

/** What is in force; `runtime/actuated-state.ts` fits. */
export interface ActuatedRecords {
  has(uid: PodUid): boolean;
  of(uid: PodUid): Actuated;
  set(uid: PodUid, container: string, resources: ResourceRequirements): void;
  setAll(uid: PodUid, containers: Iterable<readonly [string, ResourceRequirements]>): void;
  setPod(uid: PodUid, resources: ResourceRequirements): void;
  retain(alive: ReadonlySet<string>): void;
}

export type PodResizingDeps = {
  readonly allocations: Pick<AllocationState, 'allocated' | 'grant' | 'has' | 'retain'>;
  readonly actuated: ActuatedRecords;
  readonly resizes: Pick<
    Resizes,
    | 'conditionsOf'
    | 'failed'
    | 'forget'
    | 'offer'
    | 'progress'
    | 'resume'
    | 'retain'
    | 'retry'
    | 'retryPostponed'
    | 'shown'
  >;
  /** The rules of the runtime's plan: which containers can be resized, and whether one still has to be. */
  readonly plan: {
    containers(pod: Pod): readonly { readonly name: string; readonly resources?: ResourceRequirements }[];
    isResized(pod: Pod, actuated: Actuated, counts: (name: string) => boolean): boolean;
  };
  /** Why this node cannot do what an update asks for. */
  readonly updateProblem: (before: Pod, now: Pod) => string | undefined;
  readonly events: EventRecorder;
};

export class PodResizing {
  readonly #deps: PodResizingDeps;

  constructor(deps: PodResizingDeps) {
    this.#deps = deps;
  }

  /** The pod with the resources it was granted. */
  allocated<P extends Pod | undefined>(pod: P): P {
    return pod === undefined ? pod : (this.#deps.allocations.allocated(pod) as P);
  }

  /** A pod was admitted: it gets what it asks for, unless it was granted something before a restart. */
  admitted(pod: Pod): void {
    const { allocations, resizes } = this.#deps;
    if (allocations.has(uidOf(pod))) resizes.resume(pod);
    else allocations.grant(pod);
  }

  /** A pod appeared or changed. */
  offer(pod: Pod, before?: Pod): void {
    const { resizes, updateProblem, events } = this.#deps;
    const problem = before === undefined ? undefined : updateProblem(before, pod);
    if (problem !== undefined) events.pod(pod, 'Warning', 'FailedNodeDeclaredFeaturesCheck', problem);
    resizes.offer(pod, before);
  }

  /** Only the pod's status changed. */
  shown(pod: Pod, before: Pod | undefined): void {
    if (before !== undefined) this.#deps.resizes.shown(pod, before);
  }

  /** Room was made: resizes that wait may go on. */
  retry(why: Parameters<Resizes['retry']>[0]): void {
    this.#deps.resizes.retry(why);
  }

  /** Pods were admitted: resizes that waited for all pods to be known may go on. */
  retryPostponed(): void {
    this.#deps.resizes.retryPostponed();
  }

  /** The pod's cgroup was made, with what the pod was granted: later grants must be brought into it. */
  cgroupMade(pod: Pod): void {
    const { actuated, plan } = this.#deps;
    const uid = uidOf(pod);
    if (!actuated.has(uid))
      actuated.setAll(
        uid,
        plan.containers(pod).map(({ name, resources }) => [name, withPodLimits(resources, pod.spec.resources)]),
      );
    if (pod.spec.resources !== undefined) actuated.setPod(uid, pod.spec.resources);
  }

  actuatedOf(uid: PodUid): Actuated {
    return this.#deps.actuated.of(uid);
  }

  /** `over`: the containers are stopped for good. */
  withConditions(status: PodStatus, pod: Pod, over: boolean): PodStatus {
    const { resizes } = this.#deps;
    if (over) resizes.forget(uidOf(pod));
    return withResizeConditions(status, resizes.conditionsOf(uidOf(pod)));
  }

  /** What a sync of the pod did about its resize. */
  synced(pod: Pod, snapshot: PodSnapshot | undefined, error: string | undefined): void {
    const { resizes, actuated, plan } = this.#deps;
    if (error !== undefined) return resizes.failed(pod, error);
    const uid = uidOf(pod);
    const isRunning = (name: string): boolean =>
      snapshot !== undefined && newestOf(snapshot, name)?.state === 'running';
    resizes.progress(pod, actuated.has(uid) && plan.isResized(pod, actuated.of(uid), isRunning));
  }

  keepOnly(alive: ReadonlySet<string>): void {
    const { resizes, allocations, actuated } = this.#deps;
    for (const records of [resizes, allocations, actuated]) records.retain(alive);
  }
}

const hasResizeCondition = ({ conditions }: PodStatus): boolean =>
  conditions?.some((c) => c.type.startsWith('PodResize')) === true;

/** Pending and running resizes stand where upstream lists them: behind foreign conditions, before the pod's own. */
export function withResizeConditions(status: PodStatus, conditions: ReturnType<Resizes['conditionsOf']>): PodStatus {
  if (conditions.length === 0 && !hasResizeCondition(status)) return status;
  const rest = (status.conditions ?? []).filter((c) => !c.type.startsWith('PodResize'));
  const at = rest.findIndex((c) => c.type === 'PodReadyToStartContainers');
  const before = at < 0 ? rest.length : at;
  return { ...status, conditions: [...rest.slice(0, before), ...conditions, ...rest.slice(before)] };
}
