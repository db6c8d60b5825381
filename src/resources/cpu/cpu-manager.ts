// The CPU manager: allocates CPUs at admission, says which CPUs a container is created with, and keeps the cpusets of
// running containers equal to what the state says. Reconciles at once when CPUs change hands, and every
// `cpuManagerReconcilePeriod` in case an update failed.
import { formatCpuSet } from '../../core/cpuset.ts';
import type { PodUid } from '../../core/ids.ts';
import { uidOf, type Container, type Pod } from '../../core/pod.ts';
import { hasPodLevelResources } from '../../core/pod-resources.ts';
import { messageOf } from '../../lib/errors.ts';
import type { LatestFileDeps } from '../../lib/latest-file.ts';
import type { Runnable } from '../../lib/supervise.ts';
import { Wake } from '../../lib/wake.ts';
import type { HintProvider, HintsByResource, TopologyHint } from '../topology/hint-provider.ts';
import { staleEntries, type ManagedPods } from '../topology/stale-entries.ts';
import { ManagerStateFile, startProblem } from '../topology/state-file.ts';
import type { CpuMetrics } from './cpu-metrics.ts';
import { CpuState } from './cpu-state.ts';
import { formatCpuState, parseCpuState } from './cpu-state-file.ts';
import { allocatePodCpus, emptySharedPool } from './pod-partition.ts';
import type { StaticPolicy } from './static-policy.ts';

export interface CpusetWriter {
  /** Moves a running container to these CPUs. */
  setCpus(containerId: string, cpus: string, signal: AbortSignal): Promise<void>;
}

export type CpuManagerDeps = LatestFileDeps & {
  readonly pods: ManagedPods;
  readonly cpusets: CpusetWriter;
  readonly metrics: CpuMetrics;
};

export type CpuManagerOptions = {
  /** Undefined: policy `none`. */
  readonly policy: StaticPolicy | undefined;
  readonly stateFile: string;
  readonly reconcileEveryMs: number;
  /** Gate `PodLevelResourceManagers`. */
  readonly podLevelManagers: boolean;
  /** Gate `DisableCPUQuotaWithExclusiveCPUs`. */
  readonly liftQuota: boolean;
};

export class CpuManager implements HintProvider, Runnable {
  readonly name = 'cpu-manager';
  readonly #deps: CpuManagerDeps;
  readonly #o: CpuManagerOptions;
  readonly #file: ManagerStateFile;
  readonly #wake = new Wake();
  #state: CpuState;
  /** What each container was created with, until it has an id. */
  readonly #given = new Map<string, string>();
  /** The CPUs that each container id was last told. */
  readonly #told = new Map<string, string>();
  /** Created since the last reconcile; they need not be seen running yet. */
  #fresh = new Set<string>();

  constructor(deps: CpuManagerDeps, options: CpuManagerOptions) {
    this.#deps = deps;
    this.#o = options;
    this.#state = new CpuState(() => this.#changed());
    this.#file = new ManagerStateFile(deps, {
      manager: 'CPU',
      path: options.stateFile,
      content: () => formatCpuState(this.#policyName, this.#state, options.podLevelManagers),
    });
  }

  get state(): CpuState {
    return this.#state;
  }

  /** Takes over what an earlier run left. Fails when that is damaged or does not fit this machine and these settings. */
  async load(): Promise<void> {
    const { policy, podLevelManagers } = this.#o;
    const found = await this.#file.load((text) => parseCpuState(text, this.#policyName, podLevelManagers));
    this.#state = new CpuState(() => this.#changed(), found);
    try {
      policy?.validate(this.#state);
    } catch (err) {
      throw startProblem('CPU', messageOf(err));
    }
    if (found === undefined) this.#file.changed();
    // Without a record no container gets anything of its own; until one can be written, all others run.
    await this.#file.flush().catch(() => undefined);
  }

  hints(pod: Pod, container: Container): HintsByResource {
    return this.#o.policy?.hints(this.#state, pod, container) ?? {};
  }

  podHints(pod: Pod): HintsByResource {
    const { policy, podLevelManagers } = this.#o;
    if (policy === undefined) return {};
    const isPodLevel = podLevelManagers && hasPodLevelResources(pod) && policy.requestedByPod(pod) > 0;
    if (isPodLevel && emptySharedPool(policy, pod) !== undefined) return { cpu: [] };
    return policy.podHints(this.#state, pod);
  }

  allocate(pod: Pod, container: Container, { numaNodes }: TopologyHint): Promise<void> {
    return this.#counted('node', (policy, metrics) => {
      if (policy.requested(pod, container) === 0) return;
      metrics.requested();
      // What it has it keeps, however few are free: upstream looks for as many whole cores once more.
      const isKept = policy.keeps(this.#state, pod, container);
      metrics.allocated(policy, isKept ? undefined : policy.allocate(this.#state, pod, container, numaNodes));
    });
  }

  allocatePod(pod: Pod, { numaNodes }: TopologyHint): Promise<void> {
    return this.#counted('pod', (policy, metrics) => {
      for (const { exclusive } of allocatePodCpus(policy, this.#state, pod, numaNodes)) {
        if (exclusive) metrics.requested();
        metrics.sharedOut(exclusive);
      }
    });
  }

  /** Gives back the CPUs of containers that no unfinished pod has and that do not run any more. */
  removeStale(): void {
    const { policy } = this.#o;
    for (const [uid, container] of staleEntries(this.#state.entries, this.#deps.pods))
      policy?.release(this.#state, uid, container);
  }

  /** CPUs to create the container with; undefined: any. CPUs of its own must be on disk first: rejects until they are. */
  async pin(
    pod: Pod,
    container: Container,
  ): Promise<{ readonly cpus: string; readonly exclusive: boolean } | undefined> {
    if (this.#o.policy === undefined) return undefined;
    const { name } = container;
    if (this.#state.of(uidOf(pod), name) !== undefined) await this.#file.flush();
    const own = this.#state.of(uidOf(pod), name);
    const cpus = formatCpuSet(own ?? this.#state.shared);
    this.#given.set(`${uidOf(pod)}/${name}`, cpus);
    return { cpus, exclusive: this.ownsCpus(pod, container) };
  }

  /** Whether the container has CPUs of its own and is therefore not throttled. */
  ownsCpus(pod: Pod, container: Container): boolean {
    const { liftQuota, policy } = this.#o;
    if (!liftQuota || this.#state.of(uidOf(pod), container.name) === undefined) return false;
    return (policy?.requested(pod, container) ?? 0) > 0;
  }

  /** The container made with `pin` has an id now. */
  created(uid: PodUid, container: string, containerId: string): void {
    const key = `${uid}/${container}`;
    const given = this.#given.get(key);
    this.#given.delete(key);
    if (given === undefined) return;
    this.#told.set(containerId, given);
    this.#fresh.add(containerId);
  }

  /** How many containers were about to be created and have no id yet. */
  get pinned(): number {
    return this.#given.size;
  }

  /** CPUs that are the container's alone. */
  exclusiveCpus(uid: PodUid, container: string): readonly number[] {
    return [...(this.#state.of(uid, container) ?? [])];
  }

  /** Of a pod with resources of its own all containers must own theirs: what they share is held to the pod's limit. */
  hasExclusiveCpus(pod: Pod): boolean {
    const { liftQuota, podLevelManagers } = this.#o;
    if (!liftQuota || !this.#state.entries.has(uidOf(pod))) return false;
    if (!podLevelManagers || !hasPodLevelResources(pod)) return true;
    return [...(pod.spec.initContainers ?? []), ...pod.spec.containers].every((c) => this.ownsCpus(pod, c));
  }

  /** CPUs that pods can have at all; none without the static policy. */
  allocatableCpus(): readonly number[] {
    return [...(this.#o.policy?.allocatable ?? [])];
  }

  /** Writes the state file one last time. */
  close(): Promise<void> {
    return this.#file.close();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (!signal.aborted) {
      try {
        if (this.#o.policy !== undefined) await this.reconcile(signal);
      } catch (err) {
        if (!signal.aborted) log.error('cpusets were not reconciled, trying again later', { err });
      }
      await this.#wake.rest(clock, this.#o.reconcileEveryMs, signal);
    }
    await this.close();
  }

  /** Brings running containers to the CPUs they should have. */
  async reconcile(signal: AbortSignal): Promise<void> {
    this.removeStale();
    const alive = new Set<string>();
    for (const pod of this.#deps.pods.unfinished())
      for (const { name } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
        const id = this.#deps.pods.runningId(uidOf(pod), name);
        if (id === undefined) continue;
        alive.add(id);
        if (!signal.aborted) await this.#tell(pod, name, id, signal);
      }
    this.#forgetGiven();
    const fresh = this.#fresh;
    this.#fresh = new Set();
    for (const id of this.#told.keys()) if (!alive.has(id) && !fresh.has(id)) this.#told.delete(id);
  }

  /** Containers of pods that are over are created no more. */
  #forgetGiven(): void {
    if (this.#given.size === 0) return;
    const uids = new Set<string>(this.#deps.pods.unfinished().map(uidOf));
    for (const key of this.#given.keys()) if (!uids.has(key.split('/')[0] ?? '')) this.#given.delete(key);
  }

  async #tell(pod: Pod, container: string, id: string, signal: AbortSignal): Promise<void> {
    const cpus = formatCpuSet(this.#state.of(uidOf(pod), container) ?? this.#state.shared);
    if (cpus === '' || cpus === this.#told.get(id)) return;
    try {
      await this.#deps.cpusets.setCpus(id, cpus, signal);
      this.#told.set(id, cpus);
    } catch (err) {
      if (!signal.aborted)
        this.#deps.log.warn('cpuset of a container was not updated, trying again later', {
          pod: pod.metadata.name,
          container,
          containerId: id,
          cpus,
          err: messageOf(err),
        });
    }
  }

  get #policyName(): string {
    return this.#o.policy?.name ?? 'none';
  }

  #changed(): void {
    this.#file.changed();
    this.#wake.wake();
  }

  /** Runs an allocation; a failure is counted and becomes a rejection. */
  #counted(source: 'node' | 'pod', work: (policy: StaticPolicy, metrics: CpuMetrics) => void): Promise<void> {
    const { policy } = this.#o;
    const { metrics } = this.#deps;
    return Promise.try(() => {
      if (policy === undefined) return;
      try {
        work(policy, metrics);
      } catch (err) {
        metrics.failed(policy, source);
        throw err;
      }
    });
  }
}
