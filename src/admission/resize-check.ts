// Whether a pod's new resources can be had: now, later, or never on this node.
import type { Environment } from '../config/environment.ts';
import type { Node } from '../core/node.ts';
import type { Container, Pod } from '../core/pod.ts';
import { differingResources } from '../core/pod-resources.ts';
import { qosClassOf } from '../core/qos.ts';
import { quantity } from '../core/quantity.ts';
import { checkEvictionConditions } from './eviction-conditions.ts';
import { checkShutdown } from './node-shutdown.ts';
import { checkFit } from './predicates.ts';
import type { Admitted, Rejection } from './verdict.ts';

export type ResizeVerdict =
  | Admitted
  | {
      readonly ok: false;
      readonly reason: 'Deferred' | 'Infeasible';
      readonly message: string;
      /** As events name the reason, where that says more. */
      readonly cause?: string;
      /** As metrics name the reason. */
      readonly detail?: string;
    };

export type ResizeOptions = {
  readonly cpuManagerPolicy: string;
  readonly memoryManagerPolicy: string;
  /** Gate `InPlacePodVerticalScalingExclusiveCPUs`. */
  readonly resizeExclusiveCpus: boolean;
  /** Gate `InPlacePodVerticalScalingExclusiveMemory`. */
  readonly resizeExclusiveMemory: boolean;
  /** Whether the container of the pod may use swap. */
  readonly usesSwap: (pod: Pod, container: Container) => boolean;
  /** Gate `InPlacePodLevelResourcesVerticalScaling`. */
  readonly podLevel: boolean;
  /** Pressures the eviction manager reports: a node short of something gives nothing more away. */
  readonly pressures: () => readonly string[];
  readonly shuttingDown: () => boolean;
};

/** `pod` with the wanted, `granted` the same pod and `others` with their allocated resources. */
export function checkResize(
  pod: Pod,
  granted: Pod,
  others: readonly Pod[],
  node: Node,
  o: ResizeOptions,
): ResizeVerdict {
  const never = impossible(pod, granted, o);
  if (never !== undefined) return { ok: false, reason: 'Infeasible', ...never };
  const early = checkEvictionConditions(pod, o.pressures());
  if (early !== undefined) return deferred(early);
  // More than the node has is also only too much for now: nodes can grow.
  const fit = checkFit(pod, others, node);
  if (!fit.ok) return deferred(fit);
  // Before anybody goes for its sake.
  const late = checkShutdown(o.shuttingDown());
  return late === undefined ? fit : deferred(late);
}

const deferred = ({ message, reason }: Rejection): ResizeVerdict => ({
  ok: false,
  reason: 'Deferred',
  message,
  cause: reason,
});

/** The check for every pod of this node; before the node is known resizes wait. */
const resizeChecks =
  (
    known: { readonly node: () => Node | undefined; readonly allocated: (pod: Pod) => Pod },
    options: ResizeOptions,
  ): ((pod: Pod, others: readonly Pod[]) => ResizeVerdict) =>
  (pod, others) => {
    const node = known.node();
    if (node === undefined) return { ok: false, reason: 'Deferred', message: 'the node is not known yet' };
    return checkResize(pod, known.allocated(pod), others, node, options);
  };

/** By the configured managers and gates. */
export const configuredResizeChecks = (
  { config, gates }: Pick<Environment, 'config' | 'gates'>,
  known: Parameters<typeof resizeChecks>[0] & Pick<ResizeOptions, 'usesSwap' | 'pressures' | 'shuttingDown'>,
): ReturnType<typeof resizeChecks> =>
  resizeChecks(known, {
    cpuManagerPolicy: config.cpuManagerPolicy,
    memoryManagerPolicy: config.memoryManagerPolicy,
    resizeExclusiveCpus: gates.enabled('InPlacePodVerticalScalingExclusiveCPUs'),
    resizeExclusiveMemory: gates.enabled('InPlacePodVerticalScalingExclusiveMemory'),
    usesSwap: known.usesSwap,
    pressures: known.pressures,
    shuttingDown: known.shuttingDown,
    podLevel: gates.enabled('InPlacePodLevelResourcesVerticalScaling'),
  });

type Impossible = { readonly message: string; readonly detail?: string };

function impossible(pod: Pod, granted: Pod, o: ResizeOptions): Impossible | undefined {
  if (changesSwap(pod, granted, o.usesSwap))
    return { message: 'In-place resize of containers with swap is not supported.', detail: 'swap_limitation' };
  if (!o.podLevel && differingResources(pod.spec.resources, granted.spec.resources).length > 0)
    return { message: 'InPlacePodLevelResourcesVerticalScaling is disabled', detail: 'plr_feature_gate_off' };
  if (qosClassOf(pod) === 'Guaranteed') {
    const changes = pairsOf(pod, granted).flatMap(([wanted, was]) =>
      differingResources(wanted.resources, was.resources),
    );
    if (o.cpuManagerPolicy === 'static' && !o.resizeExclusiveCpus && changes.includes('cpu'))
      return {
        message: 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
        detail: 'guaranteed_pod_cpu_manager_static_policy',
      };
    if (o.memoryManagerPolicy === 'Static' && !o.resizeExclusiveMemory && changes.includes('memory'))
      return {
        message: 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"',
        detail: 'guaranteed_pod_memory_manager_static_policy',
      };
  }
  return undefined;
}

const containersOf = ({ spec }: Pod): readonly Container[] => [...(spec.initContainers ?? []), ...spec.containers];

/** Each container as wanted and as granted. */
const pairsOf = (pod: Pod, granted: Pod): readonly (readonly [Container, Container])[] => {
  const old = new Map(containersOf(granted).map((c) => [c.name, c]));
  return containersOf(pod).map((c) => [c, old.get(c.name) ?? c]);
};

/** The share of swap follows from the memory request and is set when a container starts. */
const changesSwap = (pod: Pod, granted: Pod, usesSwap: ResizeOptions['usesSwap']): boolean =>
  pairsOf(pod, granted).some(([wanted, was]) => {
    const [now, before] = [
      quantity(wanted.resources?.requests?.['memory']),
      quantity(was.resources?.requests?.['memory']),
    ];
    const policy = was.resizePolicy?.find((p) => p.resourceName === 'memory')?.restartPolicy;
    if (now.nano === before.nano || policy === 'RestartContainer') return false;
    return usesSwap(pod, wanted) || usesSwap(granted, was);
  });
