// The cgroups above the pods: kubepods, its two QoS tiers, and the operator's reserved cgroups. Set up once before any
// pod starts; then the burstable tier's weight follows the pods, at once when told and every minute in any case.
import type { EventRecorder } from '../core/events.ts';
import type { Pod } from '../core/pod.ts';
import type { Resources } from '../core/pod-resources.ts';
import type { Cgroups } from '../host/cgroups/cgroups.ts';
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
  qosName,
  type CgroupDriver,
  type CgroupName,
} from './cgroup-names.ts';
import { MIN_SHARES } from './formulas.ts';
import { burstableShares, settingsOfResources } from './pod-config.ts';

const EVERY_MS = 60_000;

interface ActivePods {
  active(): readonly Pod[];
}

interface NodeLimits {
  kubepodsLimit(enforced: boolean): Resources;
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
  /** `enforceNodeAllocatable`. */
  readonly enforce: readonly string[];
  readonly systemReservedCgroup: string;
  readonly kubeReservedCgroup: string;
};

export class CgroupTree implements Runnable {
  readonly name = 'cgroup-tree';
  readonly #deps: CgroupTreeDeps;
  readonly #o: CgroupTreeOptions;
  readonly #root: CgroupName;
  #burstableShares: number | undefined;
  #enforced = false;
  readonly #turn = new Semaphore(1);

  constructor(deps: CgroupTreeDeps, options: CgroupTreeOptions) {
    this.#deps = deps;
    this.#o = options;
    this.#root = parseCgroupName(options.root, options.driver);
  }

  /** Makes the tree. Rejects when the configured root or a reserved cgroup is missing: the kubelet must not start. */
  async setUp(signal: AbortSignal): Promise<void> {
    const { cgroups } = this.#deps;
    if (this.#root.length > 0 && !(await cgroups.exists(cgroupPath(this.#root, this.#o.driver), signal)))
      throw new KubeletError('invalid', `cgroup-root "${this.#o.root}" doesn't exist`);
    await cgroups.create(this.#path(kubepodsName(this.#root)), {}, signal);
    await Promise.all([
      cgroups.create(this.#path(qosName(this.#root, 'BestEffort')), { cpuShares: MIN_SHARES }, signal),
      cgroups.create(this.#path(qosName(this.#root, 'Burstable')), {}, signal),
    ]);
    await this.#weigh(signal);
    await this.#limitPods(signal);
    await this.#limitReserved('system-reserved', this.#o.systemReservedCgroup, 'System', 'systemReserved', signal);
    await this.#limitReserved('kube-reserved', this.#o.kubeReservedCgroup, 'Kube', 'kubeReserved', signal);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const tick = async (s: AbortSignal): Promise<void> => {
      if (!this.#enforced) await this.#limitPods(s);
      this.#burstableShares = undefined;
      await this.refresh(s);
    };
    await runEvery(clock, log, { name: this.name, everyMs: EVERY_MS, delayFirst: true }, tick, signal);
  }

  /**
   * Brings the burstable tier's weight up to date, one write at a time. Cheap when nothing changed. No pod's start or end
   * depends on it: what failed is tried again with the next one.
   */
  async refresh(signal: AbortSignal): Promise<void> {
    try {
      await this.#turn.run(signal, () => this.#weigh(signal));
    } catch (err) {
      signal.throwIfAborted();
      this.#deps.log.warn('the weight of the burstable tier could not be set, will try again', { err });
    }
  }

  async #weigh(signal: AbortSignal): Promise<void> {
    const shares = burstableShares(this.#deps.pods.active());
    if (shares === this.#burstableShares) return;
    this.#burstableShares = undefined;
    await this.#deps.cgroups.update(this.#path(qosName(this.#root, 'Burstable')), { cpuShares: shares }, signal);
    this.#burstableShares = shares;
  }

  /** Memory already in use may exceed a lowered limit: the loop tries again until evictions made room. */
  async #limitPods(signal: AbortSignal): Promise<void> {
    const { cgroups, node, events, log } = this.#deps;
    const enforced = this.#o.enforce.includes('pods');
    const path = this.#path(kubepodsName(this.#root));
    try {
      await cgroups.update(path, settingsOfResources(node.kubepodsLimit(enforced)), signal);
      this.#enforced = true;
      events.node('Normal', 'NodeAllocatableEnforced', 'Updated Node Allocatable limit across pods');
    } catch (err) {
      signal.throwIfAborted();
      log.warn('the limit across pods could not be set, will try again', { cgroup: path, err });
      const name = `[${kubepodsName(this.#root)
        .map((part) => `"${part}"`)
        .join(' ')}]`;
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
      await cgroups.update(this.#path(name), settingsOfResources(node.reservations[list], compressibleOnly), signal);
    } catch (err) {
      const message = `Failed to enforce ${title} Reserved Cgroup Limits on "${cgroup}": ${messageOf(err)}`;
      events.node('Warning', 'FailedNodeAllocatableEnforcement', message);
      throw new KubeletError('invalid', message, { cause: err });
    }
    const message = `Updated limits on ${title.toLowerCase()} reserved cgroup ${cgroup}`;
    events.node('Normal', 'NodeAllocatableEnforced', message);
  }

  #path(name: CgroupName): string {
    return cgroupPath(name, this.#o.driver);
  }
}
