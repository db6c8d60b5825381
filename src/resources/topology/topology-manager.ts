// The topology manager: asks every provider from which NUMA nodes it could serve a pod, decides, and has all of them
// allocate there. Pods are admitted one after the other. Nothing is undone after a failure: what a rejected pod holds is
// given back when its state is found stale.
import type { Container, Pod } from '../../core/pod.ts';
import { hasPodLevelResources } from '../../core/pod-resources.ts';
import type { Clock } from '../../lib/clock.ts';
import { exponentialBuckets, type Counter, type Histogram, type Registry } from '../../lib/metrics.ts';
import type { AlignmentMetrics } from '../cpu/cpu-metrics.ts';
import type { HintProvider, TopologyHint } from './hint-provider.ts';
import { mergeHints } from './merge.ts';
import { allocationRejection, type AllocationRejection } from './rejection.ts';
import type { TopologySettings } from './topology-options.ts';

export type TopologyMetrics = {
  readonly requests: Counter;
  readonly errors: Counter;
  readonly durations: Histogram;
  readonly alignment: AlignmentMetrics;
};

export const topologyMetrics = (registry: Registry, alignment: AlignmentMetrics): TopologyMetrics => ({
  requests: registry.counter(
    'kubelet_topology_manager_admission_requests_total',
    '[ALPHA] The number of admission requests where resources have to be aligned.',
  ),
  errors: registry.counter(
    'kubelet_topology_manager_admission_errors_total',
    '[ALPHA] The number of admission request failures where resources could not be aligned.',
  ),
  durations: registry.histogram(
    'kubelet_topology_manager_admission_duration_ms',
    '[ALPHA] Duration in milliseconds to serve a pod admission request.',
    [],
    exponentialBuckets(0.05, 2, 15),
  ),
  alignment,
});

export type TopologyManagerDeps = {
  /** In the order they are asked: devices, CPUs, memory. */
  readonly providers: readonly HintProvider[];
  readonly clock: Clock;
  readonly metrics: TopologyMetrics;
};

export type TopologyManagerOptions = TopologySettings & {
  /** Gate `PodLevelResourceManagers`. */
  readonly podLevelManagers: boolean;
};

const NO_HINT: TopologyHint = { numaNodes: undefined, preferred: false };

export class TopologyManager {
  readonly #deps: TopologyManagerDeps;
  readonly #o: TopologyManagerOptions;

  constructor(deps: TopologyManagerDeps, options: TopologyManagerOptions) {
    this.#deps = deps;
    this.#o = options;
    if (options.merge.policy === 'none') return;
    const { aligned, failed } = deps.metrics.alignment;
    for (const scope of ['container', 'pod']) {
      aligned.inc({ scope, boundary: 'numa_node' }, 0);
      failed.inc({ scope, boundary: 'numa_node' }, 0);
    }
  }

  /** Allocates what the pod needs. Undefined when all went well. */
  async admit(pod: Pod, signal: AbortSignal): Promise<AllocationRejection | undefined> {
    const { clock, metrics } = this.#deps;
    const begin = clock.monotonic();
    metrics.requests.inc();
    try {
      return await this.#admit(pod, signal);
    } finally {
      metrics.durations.observe(clock.monotonic() - begin);
    }
  }

  async #admit(pod: Pod, signal: AbortSignal): Promise<AllocationRejection | undefined> {
    const { merge, scope } = this.#o;
    if (merge.policy === 'none') return this.#allocateAll(pod, NO_HINT, signal);
    return scope === 'pod' ? this.#admitWhole(pod, signal) : this.#admitEach(pod, signal);
  }

  async #admitEach(pod: Pod, signal: AbortSignal): Promise<AllocationRejection | undefined> {
    for (const container of containersOf(pod)) {
      const hints = this.#deps.providers.map((provider) => provider.hints(pod, container));
      const { hint, admit } = mergeHints(hints, this.#o.merge);
      if (!admit) return this.#rejected(pod, 'container');
      const failure = await this.#attempt(() => this.#allocate(pod, container, hint, signal));
      if (failure !== undefined) return failure;
      this.#aligned('container');
    }
    return undefined;
  }

  async #admitWhole(pod: Pod, signal: AbortSignal): Promise<AllocationRejection | undefined> {
    const hints = this.#deps.providers.map((provider) => provider.podHints(pod));
    const { hint, admit } = mergeHints(hints, this.#o.merge);
    if (!admit) return this.#rejected(pod, 'pod');
    const failure = await (this.#isPodLevel(pod)
      ? this.#attempt(() => this.#allocatePod(pod, hint, signal))
      : this.#allocateAll(pod, hint, signal));
    if (failure === undefined) this.#aligned('pod');
    return failure;
  }

  #allocateAll(pod: Pod, hint: TopologyHint, signal: AbortSignal): Promise<AllocationRejection | undefined> {
    return this.#attempt(async () => {
      for (const container of containersOf(pod)) await this.#allocate(pod, container, hint, signal);
    });
  }

  async #allocate(pod: Pod, container: Container, hint: TopologyHint, signal: AbortSignal): Promise<void> {
    for (const provider of this.#deps.providers) await provider.allocate(pod, container, hint, signal);
  }

  async #allocatePod(pod: Pod, hint: TopologyHint, signal: AbortSignal): Promise<void> {
    for (const provider of this.#deps.providers) {
      if (provider.allocatePod !== undefined) await provider.allocatePod(pod, hint, signal);
      else for (const container of containersOf(pod)) await provider.allocate(pod, container, hint, signal);
    }
  }

  async #attempt(work: () => Promise<void>): Promise<AllocationRejection | undefined> {
    try {
      await work();
      return undefined;
    } catch (err) {
      if (this.#o.merge.policy !== 'none') this.#deps.metrics.errors.inc();
      return allocationRejection(err);
    }
  }

  #rejected(pod: Pod, scope: 'container' | 'pod'): AllocationRejection {
    const { errors, alignment } = this.#deps.metrics;
    errors.inc();
    if (this.#o.merge.policy === 'single-numa-node') alignment.failed.inc({ scope, boundary: 'numa_node' });
    return {
      reason: 'TopologyAffinityError',
      message: this.#isPodLevel(pod)
        ? `Pod Scope pod with pod-level resources failed admission ${scope === 'pod' ? 'under pod-scope topology manager' : 'with a container-level topology manager'}`
        : 'Resources cannot be allocated with Topology locality',
    };
  }

  #aligned(scope: 'container' | 'pod'): void {
    if (this.#o.merge.policy === 'single-numa-node')
      this.#deps.metrics.alignment.aligned.inc({ scope, boundary: 'numa_node' });
  }

  #isPodLevel(pod: Pod): boolean {
    return this.#o.podLevelManagers && hasPodLevelResources(pod);
  }
}

const containersOf = ({ spec }: Pod): readonly Container[] => [...(spec.initContainers ?? []), ...spec.containers];
