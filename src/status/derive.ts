// A pod's status from what is desired, what is observed and what was said before. Pure; this is the one place where a
// status is made from scratch.
import { named } from '../lib/by-name.ts';
import { isFinalPhase } from '../core/phase.ts';
import {
  isSidecar,
  type ContainerStatus,
  type Pod,
  type PodPhase,
  type PodStatus,
  type ResourceList,
  type ResourceRequirements,
} from '../core/pod.ts';
import { podIpsOf, type IpFamily } from '../core/pod-ips.ts';
import { podLimits, podRequests, resourceListOf, withResources } from '../core/pod-resources.ts';
import { qosClassOf } from '../core/qos.ts';
import { mustRestartAll } from '../core/restart-policy.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { parseTimeMs } from '../core/time.ts';
import { sameData } from '../lib/same-data.ts';
import { ownedConditions, OWNED_CONDITIONS } from './conditions.ts';
import { WHY_NOT_READY } from './explanation.ts';
import { containerStatuses, type ContainerStatusInput } from './container-status.ts';
import { phaseOf } from './phase.ts';

export type DeriveInput = Omit<ContainerStatusInput, 'previous' | 'restartingAll'> & {
  readonly pod: Pod;
  readonly snapshot: PodSnapshot;
  /** Our last status for this pod, or the API server's when we have none. */
  readonly previous: PodStatus;
  /** `started` and `ready` of a container, given its new and its last status. */
  readonly readiness: (
    status: ContainerStatus,
    old: ContainerStatus | undefined,
  ) => Pick<ContainerStatus, 'ready' | 'started'>;
  /** This node's addresses, primary first. */
  readonly hostIPs: readonly string[];
  /** Of a pod's first address. */
  readonly ipFamily: IpFamily;
  /** All containers are stopped for good: phases become final whatever the restart policy says. */
  readonly terminal: boolean;
  /** Gate `PodReadyToStartContainersCondition`; on unless said otherwise. */
  readonly tellsSandbox?: boolean;
  /** Gate `InPlacePodLevelResourcesVerticalScaling`; on unless said otherwise. */
  readonly tellsPodResources?: boolean;
  readonly nowMs: number;
};

const DEADLINE_REASON = 'DeadlineExceeded';
const DEADLINE_MESSAGE = 'Pod was active on the node longer than the specified deadline';

export function derivePodStatus(input: DeriveInput): PodStatus {
  const { pod, previous, snapshot } = input;
  const restartingAll = mustRestartAll(pod, snapshot, previous);
  const statuses = withReadiness({ ...input, restartingAll });
  const computed = phaseOf(pod, statuses, { terminal: input.terminal, initialised: isInitialised(pod, snapshot) });
  const overdue = pastDeadline(pod, previous, input.nowMs);
  const phase = finalPhase(input, computed, overdue);
  const last = previous.conditions ?? [];
  const conditions = ownedConditions({
    pod,
    phase,
    snapshot,
    ...statuses,
    previous: last,
    restartingAll,
    tellsSandbox: input.tellsSandbox ?? true,
  });
  const kept = (previous.conditions ?? []).filter(
    (c) => !OWNED_CONDITIONS.includes(c.type) || c.type.startsWith('PodResize') || c.type === WHY_NOT_READY,
  );
  const generation = pod.metadata.generation ?? 0;
  return {
    ...(generation > 0 ? { observedGeneration: generation } : {}),
    phase,
    conditions: [...kept, ...conditions],
    ...explanation(input, phase, overdue),
    ...addresses(input),
    ...(previous.startTime === undefined ? {} : { startTime: previous.startTime }),
    ...(statuses.init.length > 0 ? { initContainerStatuses: statuses.init } : {}),
    containerStatuses: statuses.main,
    ...(statuses.ephemeral.length > 0 ? { ephemeralContainerStatuses: statuses.ephemeral } : {}),
    qosClass: qosClassOf(pod),
    ...(input.tellsPodResources === false ? {} : resources(input, phase)),
  };
}

type Statuses = { init: ContainerStatus[]; main: ContainerStatus[]; ephemeral: ContainerStatus[] };

function withReadiness(input: DeriveInput & { readonly restartingAll: boolean }): Statuses {
  const { pod, previous } = input;
  const init = containerStatuses('init', pod.spec.initContainers ?? [], {
    ...input,
    previous: previous.initContainerStatuses ?? [],
  });
  const main = containerStatuses('main', pod.spec.containers, { ...input, previous: previous.containerStatuses ?? [] });
  const ephemeral = containerStatuses('ephemeral', pod.spec.ephemeralContainers ?? [], {
    ...input,
    previous: previous.ephemeralContainerStatuses ?? [],
  });
  const old = [...(previous.initContainerStatuses ?? []), ...(previous.containerStatuses ?? [])];
  const sidecars = new Set((pod.spec.initContainers ?? []).filter(isSidecar).map((c) => c.name));
  const judge = (status: ContainerStatus): ContainerStatus => ({
    ...status,
    ...input.readiness(status, named(old, status.name)),
  });
  return {
    main: main.map(judge),
    init: init.map((s) =>
      sidecars.has(s.name) ? judge(s) : { ...judge(s), ready: s.state.terminated?.exitCode === 0 },
    ),
    ephemeral,
  };
}

/** What an earlier sandbox had does not count: in a new one everything begins again. */
function isInitialised(pod: Pod, { sandboxes: [newest], containers }: PodSnapshot): boolean {
  if (newest?.ready !== true) return false;
  const names = new Set(pod.spec.containers.map((c) => c.name));
  return containers.some((c) => c.sandboxId === newest.id && names.has(c.name));
}

/**
 * What the API server shows as final is. Otherwise it counts how the containers ended, also those of a pod that was evicted:
 * only while they do not tell, a final phase stays. A pod past its deadline has failed, unless it had succeeded before.
 */
function finalPhase({ pod, previous }: DeriveInput, computed: PodPhase, overdue: boolean): PodPhase {
  const final = (phase: PodPhase | undefined): PodPhase | undefined => (isFinalPhase(phase) ? phase : undefined);
  const shown = final(pod.status?.phase);
  if (shown !== undefined) return shown;
  if (overdue && previous.phase !== 'Succeeded') return 'Failed';
  return final(computed) ?? final(previous.phase) ?? computed;
}

function pastDeadline(pod: Pod, status: PodStatus, nowMs: number): boolean {
  const seconds = pod.spec.activeDeadlineSeconds;
  if (seconds === undefined || status.startTime === undefined) return false;
  return nowMs - parseTimeMs(status.startTime) >= seconds * 1000;
}

/** A reason and a message belong to their phase. Others may have written them. */
function explanation(
  { pod, previous }: DeriveInput,
  phase: PodPhase,
  overdue: boolean,
): Pick<PodStatus, 'reason' | 'message'> {
  if (overdue && !isFinalPhase(previous.phase)) return { reason: DEADLINE_REASON, message: DEADLINE_MESSAGE };
  if (previous.phase !== phase) return {};
  const reason = previous.reason || pod.status?.reason;
  const message = previous.message || pod.status?.message;
  return { ...(reason ? { reason } : {}), ...(message ? { message } : {}) };
}

function addresses({ pod, snapshot, hostIPs, ipFamily, previous }: DeriveInput): Partial<PodStatus> {
  const [hostIP] = hostIPs;
  const observed = pod.spec.hostNetwork === true ? hostIPs : podIpsOf(snapshot.ips, ipFamily);
  const ips = observed.length > 0 ? observed : (previous.podIPs ?? []).map((p) => p.ip);
  const [podIP] = ips;
  return {
    ...(hostIP === undefined ? {} : { hostIP, hostIPs: hostIPs.map((ip) => ({ ip })) }),
    ...(podIP === undefined ? {} : { podIP, podIPs: ips.map((ip) => ({ ip })) }),
  };
}

type Total = { readonly requests: ResourceList | undefined; readonly limits: ResourceList | undefined };

/** Of pods as they are asked for: a pod object does not change, and its status is made every minute. */
const totals = new WeakMap<Pod, Total>();

const totalOf = (pod: Pod): Total => ({
  requests: resourceListOf(podRequests(pod)),
  limits: resourceListOf(podLimits(pod)),
});

function askedFor(pod: Pod): Total {
  let total = totals.get(pod);
  if (total === undefined) totals.set(pod, (total = totalOf(pod)));
  return total;
}

/** Everything in force is what the pod asks for. */
const isAsAsked = ({ pod, actuated }: Pick<DeriveInput, 'pod' | 'actuated'>): boolean =>
  sameData(actuated.pod, pod.spec.resources) &&
  [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].every((c) => {
    const inForce = actuated.containers.get(c.name);
    return inForce === undefined || sameData(inForce, c.resources);
  });

/** What the pod was granted, and what of it is in force. */
function resources(input: DeriveInput, phase: PodPhase): Pick<PodStatus, 'allocatedResources' | 'resources'> {
  const { pod, actuated } = input;
  const asked = askedFor(pod);
  const granted = asked.requests;
  const known = phase === 'Running' && actuated.containers.size > 0 && !isAsAsked(input);
  const { requests, limits } = known
    ? totalOf(withResources(pod, (c) => actuated.containers.get(c.name) ?? c.resources, actuated.pod))
    : asked;
  const shown = (section: 'limits' | 'requests', list: ResourceList | undefined): ResourceRequirements => {
    const kept = phase === 'Running' ? ofCgroup(list, pod.spec.resources?.[section]) : list;
    return kept === undefined ? {} : { [section]: kept };
  };
  return {
    ...(granted === undefined ? {} : { allocatedResources: granted }),
    resources: { ...shown('limits', limits), ...shown('requests', requests) },
  };
}

/** Of a pod that runs: what its cgroup has, and what is set for the pod as a whole. */
function ofCgroup(list: ResourceList | undefined, own: ResourceList | undefined): ResourceList | undefined {
  const kept = Object.entries(list ?? {}).filter(
    ([name]) => name === 'cpu' || name === 'memory' || own?.[name] !== undefined,
  );
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
