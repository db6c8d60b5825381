// Metrics of the CPU manager, and those that it shares with the memory and the topology manager.
import type { CpuSet } from '../../core/cpuset.ts';
import type { Counter, Registry } from '../../lib/metrics.ts';
import type { CpuState } from './cpu-state.ts';
import { groupCpus } from './cpu-topology.ts';
import type { StaticPolicy } from './static-policy.ts';

export type AlignmentMetrics = { readonly aligned: Counter; readonly failed: Counter };

export const alignmentMetrics = (registry: Registry): AlignmentMetrics => ({
  aligned: registry.counter(
    'kubelet_container_aligned_compute_resources_count',
    '[ALPHA] Cumulative number of aligned compute resources allocated to containers by alignment type.',
    ['scope', 'boundary'],
  ),
  failed: registry.counter(
    'kubelet_container_aligned_compute_resources_failure_count',
    '[ALPHA] Cumulative number of failures to allocate aligned compute resources to containers by alignment type.',
    ['scope', 'boundary'],
  ),
});

/** Only with the gate `PodLevelResourceManagers`, as upstream has it. */
export type AllocationMetrics = {
  readonly allocations: Counter;
  readonly errors: Counter;
  readonly assignments: Counter;
};

export const allocationMetrics = (registry: Registry): AllocationMetrics => ({
  allocations: registry.counter(
    'resource_manager_allocations_total',
    '[ALPHA] Number of exclusive resource allocations performed by a resource manager.',
    ['resource_name', 'source'],
  ),
  errors: registry.counter(
    'resource_manager_allocation_errors_total',
    '[ALPHA] Number of errors encountered during exclusive resource allocation.',
    ['resource_name', 'source'],
  ),
  assignments: registry.counter(
    'resource_manager_container_assignments',
    '[ALPHA] Number of containers with a specific type of resource assignment.',
    ['resource_name', 'assignment_type'],
  ),
});

const PHYSICAL = { scope: 'container', boundary: 'physical_cpu' };
const UNCORE = { scope: 'container', boundary: 'uncore_cache' };

export class CpuMetrics {
  readonly #alignment: AlignmentMetrics;
  readonly #allocation: AllocationMetrics | undefined;
  readonly #requests: Counter;
  readonly #errors: Counter;

  constructor(registry: Registry, alignment: AlignmentMetrics, allocation: AllocationMetrics | undefined) {
    this.#alignment = alignment;
    this.#allocation = allocation;
    this.#requests = registry.counter(
      'kubelet_cpu_manager_pinning_requests_total',
      '[ALPHA] The number of cpu core allocations which required pinning.',
    );
    this.#errors = registry.counter(
      'kubelet_cpu_manager_pinning_errors_total',
      '[ALPHA] The number of cpu core allocations which required pinning failed.',
    );
  }

  /** Pools are counted when somebody asks. */
  observe(registry: Registry, policy: StaticPolicy | undefined, state: () => CpuState): void {
    const owned = (): CpuSet =>
      policy?.topology.cpus.difference(state().shared).difference(policy.reserved) ?? new Set();
    registry.collected(
      'kubelet_cpu_manager_shared_pool_size_millicores',
      '[ALPHA] The size of the shared CPU pool for non-guaranteed QoS pods, in millicores.',
      'gauge',
      () => [[{}, policy === undefined ? 0 : policy.available(state()).size * 1000]],
    );
    registry.collected(
      'kubelet_cpu_manager_exclusive_cpu_allocation_count',
      '[ALPHA] The total number of CPUs exclusively allocated to containers running on this node',
      'gauge',
      () => [[{}, owned().size]],
    );
    registry.collected(
      'kubelet_cpu_manager_allocation_per_numa',
      '[ALPHA] Number of CPUs allocated per NUMA node',
      'gauge',
      () =>
        policy === undefined
          ? []
          : [...policy.topology.units.numa.keys()]
              .map((numa) => [numa, groupCpus(policy.topology.places, owned(), 'numa').get(numa)?.size ?? 0] as const)
              .filter(([, count]) => count > 0)
              .map(([numa, count]) => [{ numa_node: String(numa) }, count] as const),
    );
    if (policy === undefined) return;
    for (const labels of [PHYSICAL, UNCORE]) this.#alignment.aligned.inc(labels, 0);
    this.#alignment.failed.inc(PHYSICAL, 0);
  }

  requested(): void {
    this.#requests.inc();
  }

  failed(policy: StaticPolicy, source: 'node' | 'pod'): void {
    this.#errors.inc();
    this.#allocation?.errors.inc({ resource_name: 'cpu', source });
    if (source === 'node' && policy.has('full-pcpus-only')) this.#alignment.failed.inc(PHYSICAL);
  }

  /** `cpus`: newly given; undefined when the container had them already. */
  allocated(policy: StaticPolicy, cpus: CpuSet | undefined): void {
    if (policy.has('full-pcpus-only')) this.#alignment.aligned.inc(PHYSICAL);
    if (cpus === undefined) return;
    this.#allocation?.allocations.inc({ resource_name: 'cpu', source: 'node' });
    this.#allocation?.assignments.inc({ resource_name: 'cpu', assignment_type: 'node_exclusive' });
    if (groupCpus(policy.topology.places, cpus, 'uncore').size === 1) this.#alignment.aligned.inc(UNCORE);
  }

  sharedOut(exclusive: boolean): void {
    this.#allocation?.allocations.inc({ resource_name: 'cpu', source: 'pod' });
    this.#allocation?.assignments.inc({
      resource_name: 'cpu',
      assignment_type: exclusive ? 'pod_exclusive' : 'pod_shared',
    });
  }
}
