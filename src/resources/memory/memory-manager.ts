// The memory manager: allocates memory of particular NUMA nodes at admission and says from which nodes a container may
// take it. What init containers hold is given back when the next container starts.
import type { PodUid } from '../../core/ids.ts';
import { isSidecar, uidOf, type Container, type Pod } from '../../core/pod.ts';
import { aborted } from '../../lib/abort.ts';
import { messageOf } from '../../lib/errors.ts';
import type { LatestFileDeps } from '../../lib/latest-file.ts';
import type { Counter, Registry } from '../../lib/metrics.ts';
import type { Runnable } from '../../lib/supervise.ts';
import type { AllocationMetrics } from '../cpu/cpu-metrics.ts';
import type { HintProvider, HintsByResource, TopologyHint } from '../topology/hint-provider.ts';
import { staleEntries, type ManagedPods } from '../topology/stale-entries.ts';
import { ManagerStateFile, startProblem } from '../topology/state-file.ts';
import type { MemoryBlock } from './machine-memory.ts';
import type { MemoryPolicy } from './memory-policy.ts';
import { MemoryState } from './memory-state.ts';
import { formatMemoryState, parseMemoryState } from './memory-state-file.ts';
import { allocatePodMemory } from './pod-partition.ts';

export type MemoryMetrics = {
  readonly requests: Counter;
  readonly errors: Counter;
  readonly allocation: AllocationMetrics | undefined;
};

export const memoryMetrics = (registry: Registry, allocation: AllocationMetrics | undefined): MemoryMetrics => ({
  requests: registry.counter(
    'kubelet_memory_manager_pinning_requests_total',
    '[ALPHA] The number of memory pages allocations which required pinning.',
  ),
  errors: registry.counter(
    'kubelet_memory_manager_pinning_errors_total',
    '[ALPHA] The number of memory pages allocations which required pinning that failed.',
  ),
  allocation,
});

export type MemoryManagerDeps = LatestFileDeps & { readonly pods: ManagedPods; readonly metrics: MemoryMetrics };

export type MemoryManagerOptions = {
  /** Undefined: policy `None`. */
  readonly policy: MemoryPolicy | undefined;
  readonly stateFile: string;
  /** Gate `PodLevelResourceManagers`. */
  readonly podLevelManagers: boolean;
};

/** A part of the memory of some NUMA nodes. */
export type MemoryShare = { readonly type: string; readonly bytes: number; readonly nodes: readonly number[] };

const shareOf = ({ type, size, numaNodes }: MemoryBlock): MemoryShare => ({ type, bytes: size, nodes: numaNodes });

export class MemoryManager implements HintProvider, Runnable {
  readonly name = 'memory-manager';
  readonly #deps: MemoryManagerDeps;
  readonly #o: MemoryManagerOptions;
  readonly #file: ManagerStateFile;
  #state: MemoryState;

  constructor(deps: MemoryManagerDeps, options: MemoryManagerOptions) {
    this.#deps = deps;
    this.#o = options;
    this.#state = new MemoryState(() => this.#file.changed());
    this.#file = new ManagerStateFile(deps, {
      manager: 'memory',
      path: options.stateFile,
      content: () => formatMemoryState(this.#policyName, this.#state, options.podLevelManagers),
    });
  }

  get state(): MemoryState {
    return this.#state;
  }

  /** Takes over what an earlier run left. Fails when that is damaged or does not fit this machine and these settings. */
  async load(): Promise<void> {
    const { policy, podLevelManagers } = this.#o;
    const found = await this.#file.load((text) => parseMemoryState(text, this.#policyName, podLevelManagers));
    this.#state = new MemoryState(() => this.#file.changed(), found);
    try {
      policy?.validate(this.#state);
    } catch (err) {
      throw startProblem('memory', messageOf(err));
    }
    if (found === undefined) this.#file.changed();
    // Without a record no container gets anything of its own; until one can be written, all others run.
    await this.#file.flush().catch(() => undefined);
  }

  hints(pod: Pod, container: Container): HintsByResource {
    return this.#o.policy?.hints(this.#state, pod, container) ?? {};
  }

  podHints(pod: Pod): HintsByResource {
    return this.#o.policy?.podHints(this.#state, pod) ?? {};
  }

  allocate(pod: Pod, container: Container, hint: TopologyHint): Promise<void> {
    return this.#counted(pod, 'node', (policy, { requests, allocation }) => {
      requests.inc();
      const blocks = policy.allocate(this.#state, pod, container, hint);
      if (blocks === undefined) return;
      allocation?.allocations.inc({ resource_name: 'memory', source: 'node' }, blocks.length);
      allocation?.assignments.inc({ resource_name: 'memory', assignment_type: 'node_exclusive' });
    });
  }

  allocatePod(pod: Pod, hint: TopologyHint): Promise<void> {
    return this.#counted(pod, 'pod', (policy, { requests, allocation }) => {
      requests.inc();
      for (const { exclusive } of allocatePodMemory(policy, this.#state, pod, hint)) {
        if (exclusive) requests.inc();
        allocation?.allocations.inc({ resource_name: 'memory', source: 'pod' });
        allocation?.assignments.inc({
          resource_name: 'memory',
          assignment_type: exclusive ? 'pod_exclusive' : 'pod_shared',
        });
      }
    });
  }

  /** Gives back the memory of containers that no unfinished pod has and that do not run any more. */
  removeStale(): void {
    for (const [uid, container] of staleEntries(this.#state.entries, this.#deps.pods))
      this.#o.policy?.release(this.#state, uid, container);
  }

  /** NUMA nodes the container may take memory from; undefined: any. Its memory must be on disk first: rejects until it is. */
  async pin(pod: Pod, container: Container): Promise<string | undefined> {
    if (this.#o.policy === undefined) return undefined;
    if (this.blocksOf(uidOf(pod), container.name).length > 0) await this.#file.flush();
    const nodes = new Set(this.blocksOf(uidOf(pod), container.name).flatMap(({ numaNodes }) => numaNodes));
    return nodes.size === 0 ? undefined : [...nodes].sort((a, b) => a - b).join();
  }

  /** The container starts: init containers before it are over, and so is their need for memory. */
  created(pod: Pod, container: Container): void {
    for (const init of pod.spec.initContainers ?? []) {
      if (init.name === container.name) break;
      if (!isSidecar(init)) this.#o.policy?.release(this.#state, uidOf(pod), init.name);
    }
  }

  blocksOf(uid: PodUid, container: string): readonly MemoryBlock[] {
    return this.#state.of(uid, container) ?? [];
  }

  /** What the container holds, as the pod resources API shows it. */
  memoryOf(uid: PodUid, container: string): readonly MemoryShare[] {
    return this.blocksOf(uid, container).map(shareOf);
  }

  /** What each node has for pods. */
  allocatableMemory(): readonly MemoryShare[] {
    return [...this.#state.machine].flatMap(([id, { tables }]) =>
      [...tables]
        .filter(([, { allocatable }]) => allocatable > 0)
        .map(([type, { allocatable }]) => ({ type, bytes: allocatable, nodes: [id] })),
    );
  }

  /** Writes the state file one last time. */
  close(): Promise<void> {
    return this.#file.close();
  }

  async run(signal: AbortSignal): Promise<void> {
    await aborted(signal);
    await this.close();
  }

  get #policyName(): string {
    return this.#o.policy?.name ?? 'None';
  }

  /** Runs an allocation; a failure is counted and becomes a rejection. */
  #counted(
    pod: Pod,
    source: 'node' | 'pod',
    work: (policy: MemoryPolicy, metrics: MemoryMetrics) => void,
  ): Promise<void> {
    const { policy } = this.#o;
    const { metrics } = this.#deps;
    return Promise.try(() => {
      if (policy?.manages(pod) !== true) return;
      try {
        work(policy, metrics);
      } catch (err) {
        metrics.errors.inc();
        metrics.allocation?.errors.inc({ resource_name: 'memory', source });
        throw err;
      }
    });
  }
}
