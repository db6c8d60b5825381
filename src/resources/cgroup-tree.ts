// The cgroups above the pods: kubepods, its two QoS tiers, and the operator's reserved cgroups. Set up once before any
// pod starts; then the burstable tier's weight follows the pods, at once when told and every minute in any case.
import type { EventRecorder } from '../core/events.ts';
import type { Pod, QosClass } from '../core/pod.ts';
import type { Resources } from '../core/pod-resources.ts';
import type { Cgroups, CgroupSettings } from '../host/cgroups/cgroups.ts';
import { aborted } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import { Semaphore } from '../lib/semaphore.ts';
import type { Runnable } from '../lib/supervise.ts';
import {
  cgroupPath,
  kubepodsName,
  parseCgroupName,
  parseCgroupRoot,
  qosName,
  type CgroupDriver,
  type CgroupName,
} from '../host/cgroups/cgroup-names.ts';
import { MIN_SHARES } from './formulas.ts';
import { settingsOfResources } from './pod-config.ts';
import { qosTierSettings, requestedMemory, type QosTierOptions } from './qos-tiers.ts';

const EVERY_MS = 60_000;

interface ActivePods {
  active(): readonly Pod[];
}

interface NodeLimits {
  kubepodsLimit(enforced: boolean): Resources;
  podMemoryBytes(): number;
  readonly reservations: { readonly kubeReserved: Resources; readonly systemReserved: Resources };
}

export type CgroupTreeDeps = {
  readonly cgroups: Cgroups;
  readonly pods: ActivePods;
  readonly node: NodeLimits;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
};

export type CgroupTreeOptions = {
  readonly driver: CgroupDriver;
  /** `cgroupRoot`. */
  readonly root: string;
  /** `cgroupsPerQOS`: without it there are no cgroups above the pods but the root. */
  readonly perQos: boolean;
  /** `enforceNodeAllocatable`. */
  readonly enforce: readonly string[];
  readonly systemReservedCgroup: string;
  readonly kubeReservedCgroup: string;
  readonly tiers: QosTierOptions;
};

export class CgroupTree implements Runnable {
  readonly name = 'cgroup-tree';
  readonly #deps: CgroupTreeDeps;
  readonly #o: CgroupTreeOptions;
  readonly #root: CgroupName;
  /** What each tier was last set to. */
  readonly #applied = new Map<QosClass, string>();
  #enforced = false;
  readonly #turn = new Semaphore(1);

  constructor(deps: CgroupTreeDeps, options: CgroupTreeOptions) {
    this.#deps = deps;
    this.#o = options;
    this.#root = parseCgroupRoot(options.root, options.driver);
  }

  /** Makes the tree. Rejects when the configured root or a reserved cgroup is missing: the kubelet must not start. */
  async setUp(signal: AbortSignal): Promise<void> {
    if (this.#o.perQos) await this.#makeTiers(signal);
    await this.#limitPods(signal);
    await this.#limitReserved('system-reserved', this.#o.systemReservedCgroup, 'System', 'systemReserved', signal);
    await this.#limitReserved('kube-reserved', this.#o.kubeReservedCgroup, 'Kube', 'kubeReserved', signal);
  }

  async #makeTiers(signal: AbortSignal): Promise<void> {
    const { cgroups } = this.#deps;
    if (this.#root.length > 0 && !(await cgroups.exists(cgroupPath(this.#root, this.#o.driver), signal)))
      throw new KubeletError('invalid', `cgroup-root "${this.#o.root}" doesn't exist`);
    await cgroups.create(this.#path(kubepodsName(this.#root)), {}, signal);
    await Promise.all([
      cgroups.create(this.#path(qosName(this.#root, 'BestEffort')), { cpuShares: MIN_SHARES }, signal),
      cgroups.create(this.#path(qosName(this.#root, 'Burstable')), {}, signal),
    ]);
    await this.#weigh(signal);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    if (!this.#o.perQos && this.#enforced) return aborted(signal);
    const tick = async (s: AbortSignal): Promise<void> => {
      if (!this.#enforced) await this.#limitPods(s);
      this.#applied.clear();
      await this.refresh(s);
    };
    await runEvery(clock, log, { name: this.name, everyMs: EVERY_MS, delayFirst: true }, tick, signal);
  }

  /**
   * Brings the burstable tier's weight up to date, one write at a time. Cheap when nothing changed. No pod's start or end
   * depends on it: what failed is tried again with the next one.
   */
  async refresh(signal: AbortSignal): Promise<void> {
    if (!this.#o.perQos) return;
    try {
      await this.#turn.run(signal, () => this.#weigh(signal));
    } catch (err) {
      signal.throwIfAborted();
      this.#deps.log.warn('the weight of the burstable tier could not be set, will try again', { err });
    }
  }

  async #weigh(signal: AbortSignal): Promise<void> {
    const { pods, node } = this.#deps;
    const { Guaranteed, Burstable, BestEffort } = qosTierSettings(pods.active(), node.podMemoryBytes(), this.#o.tiers);
    await this.#setTier('Guaranteed', Guaranteed, signal);
    await this.#setTier('Burstable', Burstable, signal);
    await this.#setTier('BestEffort', BestEffort, signal);
  }

  async #setTier(qos: QosClass, settings: CgroupSettings, signal: AbortSignal): Promise<void> {
    const text = JSON.stringify(settings);
    if (text === '{}' || text === this.#applied.get(qos)) return;
    this.#applied.delete(qos);
    const path = this.#path(qosName(this.#root, qos));
    try {
      await this.#deps.cgroups.update(path, settings, signal);
    } catch (err) {
      const usage = settings.memoryBytes === undefined ? undefined : await this.#usageAbove(path, settings, signal);
      if (usage === undefined) throw err;
      // More is in use than the tier should have: at least it gets no more than that.
      await this.#deps.cgroups.update(path, { ...settings, memoryBytes: usage }, signal);
      return;
    }
    this.#applied.set(qos, text);
  }

  async #usageAbove(
    path: string,
    { memoryBytes = 0 }: CgroupSettings,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const usage = Number((await this.#deps.cgroups.read(path, signal)).memoryUsageBytes ?? 0n);
    return usage > memoryBytes ? usage : undefined;
  }

  /** Memory that is kept from reclaim, for metrics: never, and rather not. */
  protectedMemory(): { readonly min: number; readonly low: number } {
    if (this.#o.tiers.memoryReservation !== 'TieredReservation') return { min: 0, low: 0 };
    const { guaranteed, burstable } = requestedMemory(this.#deps.pods.active());
    return { min: guaranteed, low: burstable };
  }

  /**
   * Memory already in use may exceed a lowered limit: the loop tries again until evictions made room. Without tiers the
   * root is where pods are: it gets all that the machine has, and so a weight beside the system's.
   */
  async #limitPods(signal: AbortSignal): Promise<void> {
    const { cgroups, node, events, log } = this.#deps;
    const { perQos, enforce } = this.#o;
    const enforced = perQos && enforce.includes('pods');
    const above = perQos ? kubepodsName(this.#root) : this.#root;
    if (above.length === 0) {
      this.#enforced = true;
      return;
    }
    const path = this.#path(above);
    try {
      await cgroups.update(path, settingsOfResources(node.kubepodsLimit(enforced)), signal);
      this.#enforced = true;
      events.node('Normal', 'NodeAllocatableEnforced', 'Updated Node Allocatable limit across pods');
    } catch (err) {
      signal.throwIfAborted();
      log.warn('the limit across pods could not be set, will try again', { cgroup: path, err });
      const name = `[${above.map((part) => `"${part}"`).join(' ')}]`;
      const message = `Failed to update Node Allocatable Limits ${name}: ${messageOf(err)}`;
      events.node('Warning', 'FailedNodeAllocatableEnforcement', message);
    }
  }

  async #limitReserved(
    key: string,
    cgroup: string,
    title: 'System' | 'Kube',
    list: 'systemReserved' | 'kubeReserved',
    signal: AbortSignal,
  ): Promise<void> {
    const { cgroups, node, events } = this.#deps;
    const compressibleOnly = this.#o.enforce.includes(`${key}-compressible`);
    if (!compressibleOnly && !this.#o.enforce.includes(key)) return;
    const name = parseCgroupName(cgroup, this.#o.driver);
    try {
      if (!(await cgroups.exists(this.#path(name), signal)))
        throw new KubeletError('notFound', `[${name.map((part) => `"${part}"`).join(' ')}] cgroup does not exist`);
      const settings = settingsOfResources(node.reservations[list], compressibleOnly);
      await cgroups.update(this.#path(name), this.#withMemoryMin(settings), signal);
    } catch (err) {
      const what = compressibleOnly ? `${title} Reserved Compressible` : `${title} Reserved`;
      const message = `Failed to enforce ${what} Cgroup Limits on "${cgroup}": ${messageOf(err)}`;
      events.node('Warning', 'FailedNodeAllocatableEnforcement', message);
      throw new KubeletError('invalid', message, { cause: err });
    }
    const message = `Updated limits on ${title.toLowerCase()} reserved cgroup ${cgroup}`;
    events.node('Normal', 'NodeAllocatableEnforced', message);
  }

  /** With memory QoS the system and the kubelet keep their memory under pressure. */
  #withMemoryMin(settings: CgroupSettings): CgroupSettings {
    return this.#o.tiers.memoryReservation === undefined || settings.memoryBytes === undefined
      ? settings
      : { ...settings, unified: { 'memory.min': `${settings.memoryBytes}` } };
  }

  #path(name: CgroupName): string {
    return cgroupPath(name, this.#o.driver);
  }
}
