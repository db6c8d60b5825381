// Each pod's own cgroup, parent of its containers'. Called by the pod's worker only, so one pod is never handled twice
// at the same time.
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod, type QosClass } from '../core/pod.ts';
import { qosClassOf } from '../core/qos.ts';
import { UNLIMITED, type CgroupReading, type Cgroups, type CgroupSettings } from '../host/cgroups/cgroups.ts';
import type { Clock } from '../lib/clock.ts';
import type { Histogram } from '../lib/metrics.ts';
import { settleAll } from '../lib/settle.ts';
import {
  cgroupPath,
  podName,
  podUidOfDir,
  qosName,
  parseCgroupRoot,
  type CgroupDriver,
  type CgroupName,
} from '../host/cgroups/cgroup-names.ts';
import { MIN_SHARES } from './formulas.ts';
import { podCgroupSettings, type PodConfigOptions } from './pod-config.ts';

const QOS_CLASSES: readonly QosClass[] = ['Guaranteed', 'Burstable', 'BestEffort'];

export type PodCgroupsDeps = {
  readonly cgroups: Cgroups;
  readonly clock: Clock;
  /** Whether the pod owns whole CPUs (ContainerManagerHooks.hasExclusiveCpus). */
  readonly hasExclusiveCpus: (pod: Pod) => boolean;
  /** `kubelet_cgroup_manager_duration_seconds`. */
  readonly durations?: Histogram;
};

export type PodCgroupsOptions = {
  readonly driver: CgroupDriver;
  /** `cgroupRoot`. */
  readonly root: string;
  /** `cgroupsPerQOS`: without it pods have no cgroups, and containers are wherever the runtime puts them. */
  readonly perQos: boolean;
  /** `cpuCFSQuota`. */
  readonly cpuCfsQuota: boolean;
} & Omit<PodConfigOptions, 'enforceCpuLimits'>;

export class PodCgroups {
  readonly #deps: PodCgroupsDeps;
  readonly #o: PodCgroupsOptions;
  readonly #root: CgroupName;

  constructor(deps: PodCgroupsDeps, options: PodCgroupsOptions) {
    this.#deps = deps;
    this.#o = options;
    this.#root = parseCgroupRoot(options.root, options.driver);
  }

  /** CRI's `cgroup_parent`, and the path below the cgroup mounts. */
  parentOf(pod: Pod): string {
    if (!this.#o.perQos) return '';
    return cgroupPath(podName(this.#root, qosClassOf(pod), uidOf(pod)), this.#o.driver);
  }

  /** The settings the pod's cgroup gets: where an in-place resize starts and ends. */
  configOf(pod: Pod): CgroupSettings {
    const enforceCpuLimits = this.#o.cpuCfsQuota && !this.#deps.hasExclusiveCpus(pod);
    return podCgroupSettings(pod, { ...this.#o, enforceCpuLimits });
  }

  /** Makes the cgroup if it is missing, and says so. One that exists is left as it is. */
  async ensure(pod: Pod, signal: AbortSignal): Promise<boolean> {
    if (await this.exists(pod, signal)) return false;
    await this.#timed('create', () => this.#deps.cgroups.create(this.parentOf(pod), this.configOf(pod), signal));
    return true;
  }

  exists(pod: Pod, signal: AbortSignal): Promise<boolean> {
    if (!this.#o.perQos) return Promise.resolve(true);
    return this.#deps.cgroups.exists(this.parentOf(pod), signal);
  }

  /** Applies the pod's present settings, or just the given ones (one step of a resize). */
  update(pod: Pod, signal: AbortSignal, settings: CgroupSettings = this.configOf(pod)): Promise<void> {
    if (!this.#o.perQos) return Promise.resolve();
    return this.#timed('update', () => this.#deps.cgroups.update(this.parentOf(pod), settings, signal));
  }

  read(pod: Pod, signal: AbortSignal): Promise<CgroupReading> {
    if (!this.#o.perQos) return Promise.resolve({});
    return this.#deps.cgroups.read(this.parentOf(pod), signal);
  }

  /** Writes one value, a step of a resize; 0 lifts the limit. */
  write(
    pod: Pod,
    key: 'cpuShares' | 'cpuQuota' | 'memoryLimitBytes',
    value: number,
    signal: AbortSignal,
  ): Promise<void> {
    const limit = value === 0 ? UNLIMITED : value;
    const settings = {
      cpuShares: { cpuShares: value },
      cpuQuota: { cpuQuotaUs: limit, cpuPeriodUs: this.#o.cpuPeriodUs },
      memoryLimitBytes: { memoryBytes: limit },
    };
    return this.update(pod, signal, settings[key]);
  }

  async memoryUsageOf(pod: Pod, signal: AbortSignal): Promise<number | undefined> {
    const { memoryUsageBytes } = await this.read(pod, signal);
    return memoryUsageBytes === undefined ? undefined : Number(memoryUsageBytes);
  }

  /** Kills what is left in the pod's cgroup and removes it: in every tier where only its UID is known. */
  async destroy(pod: Pod | PodUid, signal: AbortSignal): Promise<void> {
    const paths = typeof pod === 'string' ? this.#pathsOf(pod) : this.#o.perQos ? [this.parentOf(pod)] : [];
    await this.#timed('destroy', () =>
      settleAll(paths.map((path) => this.#removeIfAny(path, signal))).then(() => undefined),
    );
  }

  /** UIDs of all pods that have a cgroup, known or not. */
  async listPodUids(signal: AbortSignal): Promise<readonly PodUid[]> {
    if (!this.#o.perQos) return [];
    const dirs = await Promise.all(
      QOS_CLASSES.map((qos) =>
        this.#deps.cgroups.children(cgroupPath(qosName(this.#root, qos), this.#o.driver), signal),
      ),
    );
    const uids = dirs.flat().map((dir) => podUidOfDir(dir, this.#o.driver));
    return [...new Set(uids.filter((uid) => uid !== undefined))];
  }

  /** An orphan whose volumes are still in use keeps its cgroup, but no longer competes for the processors. */
  async reduceToMinimum(uid: PodUid, signal: AbortSignal): Promise<void> {
    for (const path of this.#pathsOf(uid))
      if (await this.#deps.cgroups.exists(path, signal))
        await this.#timed('update', () => this.#deps.cgroups.update(path, { cpuShares: MIN_SHARES }, signal));
  }

  async #removeIfAny(path: string, signal: AbortSignal): Promise<void> {
    if (this.#o.driver === 'systemd' && !(await this.#deps.cgroups.exists(path, signal))) return;
    await this.#deps.cgroups.destroy(path, signal);
  }

  #pathsOf(uid: PodUid): readonly string[] {
    if (!this.#o.perQos) return [];
    return QOS_CLASSES.map((qos) => cgroupPath(podName(this.#root, qos, uid), this.#o.driver));
  }

  async #timed(operation: string, op: () => Promise<void>): Promise<void> {
    const { clock, durations } = this.#deps;
    const start = clock.monotonic();
    try {
      await op();
    } finally {
      durations?.observe((clock.monotonic() - start) / 1000, { operation_type: operation });
    }
  }
}
