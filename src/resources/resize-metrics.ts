// What is counted of in-place resizes: what was asked for, what can never be had, and what had to wait.
import type { Container, Pod } from '../core/pod.ts';
import { RESIZABLE_RESOURCES } from '../core/pod-resources.ts';
import { compareQuantities, quantity } from '../core/quantity.ts';
import type { Registry } from '../lib/metrics.ts';

/** Why waiting resizes are looked at again. */
export type RetryTrigger =
  | 'pod_resized'
  | 'pod_updated'
  | 'pods_added'
  | 'pods_removed'
  | 'pod_terminated'
  | 'periodic_retry';

export interface ResizeMetrics {
  requested(operations: readonly ResizeOperation[]): void;
  infeasible(detail: string): void;
  acceptedLate(trigger: RetryTrigger): void;
}

export type ResizeOperation = {
  readonly resource: string;
  readonly requirement: 'requests' | 'limits';
  readonly operation: 'add' | 'remove' | 'increase' | 'decrease';
};

/** How the containers' resources differ between two versions of a pod. */
export function resizeOperations(before: Pod, now: Pod): readonly ResizeOperation[] {
  const all = ({ spec }: Pod): readonly Container[] => [...(spec.initContainers ?? []), ...spec.containers];
  const old = new Map(all(before).map((c) => [c.name, c]));
  return all(now).flatMap((container) =>
    RESIZABLE_RESOURCES.flatMap((resource) =>
      (['requests', 'limits'] as const).flatMap((requirement): ResizeOperation[] => {
        const was = old.get(container.name);
        const operation =
          was && operationOf(container.resources?.[requirement]?.[resource], was.resources?.[requirement]?.[resource]);
        return operation === undefined ? [] : [{ resource, requirement, operation }];
      }),
    ),
  );
}

function operationOf(now: string | undefined, before: string | undefined): ResizeOperation['operation'] | undefined {
  const [mine, old] = [quantity(now), quantity(before)];
  const difference = compareQuantities(mine, old);
  if (difference === 0) return undefined;
  if (mine.nano === 0n) return 'remove';
  if (old.nano === 0n) return 'add';
  return difference < 0 ? 'decrease' : 'increase';
}

export function resizeMetrics(registry: Registry): ResizeMetrics {
  const requested = registry.counter(
    'kubelet_container_requested_resizes_total',
    "[ALPHA] Number of requested resizes, counted at the container level. Different resources on the same container are counted separately. The 'requirement' label refers to 'memory' or 'limits'; the 'operation' label can be one of 'add', 'remove', 'increase' or 'decrease'.",
    ['resource', 'requirement', 'operation'],
  );
  const infeasible = registry.counter(
    'kubelet_pod_infeasible_resizes_total',
    '[ALPHA] Number of infeasible resizes for pods.',
    ['reason_detail'],
  );
  const late = registry.counter(
    'kubelet_pod_deferred_accepted_resizes_total',
    '[ALPHA] Cumulative number of resizes that were accepted after being deferred.',
    ['retry_trigger'],
  );
  return {
    requested: (operations) => {
      for (const labels of operations) requested.inc(labels);
    },
    infeasible: (detail) => infeasible.inc({ reason_detail: detail }),
    acceptedLate: (trigger) => late.inc({ retry_trigger: trigger }),
  };
}
