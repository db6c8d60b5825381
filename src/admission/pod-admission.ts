// Asks every check in upstream's order; the first objection decides.
import type { Node } from '../core/node.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Counter } from '../lib/metrics.ts';
import { checkAppArmor } from './app-armor.ts';
import { evictVictims, type EvictVictimsDeps } from './evict-victims.ts';
import { checkEvictionConditions } from './eviction-conditions.ts';
import { hasCapacity, withAtLeast } from './node-fit.ts';
import { checkShutdown } from './node-shutdown.ts';
import { checkDeclaredFeatures, checkPodLevelResources } from './pod-features.ts';
import { checkPredicates, onlyNodeAffinityFails } from './predicates.ts';
import { rejectionLabel } from './rejection-label.ts';
import type { SysctlAllowlist } from './sysctls.ts';
import type { Admitted, AdmissionVerdict, Rejection } from './verdict.ts';

interface NodeSource {
  /** The node as last seen; undefined while unknown. */
  node(): Node | undefined;
  /** Reads it anew: its labels may have changed a moment ago. */
  fresh(signal: AbortSignal): Promise<Node | undefined>;
}

interface ResourceHooks {
  admit(pod: Pod, signal: AbortSignal): Promise<{ readonly ok: true } | ({ readonly ok: false } & Rejection)>;
}

export type PodAdmissionDeps = {
  readonly node: NodeSource;
  readonly hooks: ResourceHooks;
  readonly sysctls: SysctlAllowlist;
  /** Pressures the eviction manager reports, in its order. */
  readonly nodeConditions: () => readonly string[];
  readonly shuttingDown: () => boolean;
  /** Whether the pod runs here already: the agent before this one admitted it. */
  readonly isRunning: (pod: Pod) => boolean;
  /** Why a volume of the pod cannot be had on this node; undefined when all can. */
  readonly unsupportedVolume: (pod: Pod) => string | undefined;
  readonly evict: EvictVictimsDeps['evict'];
  readonly clock: Clock;
  /** Counts of all devices given out, for a pod that has some; empty for any other. */
  readonly allocatedDevices?: (pod: Pod) => ReadonlyMap<string, number>;
  readonly log: Logger;
  /** `kubelet_admission_rejections_total{reason}`. */
  readonly rejections?: Counter;
  /** `kubelet_preemptions{preemption_signal}`. */
  readonly preemptions?: Counter;
};

export type PodAdmissionOptions = {
  readonly podLevelResources: boolean;
  /** What the node declares that pods may need. */
  readonly declaredFeatures: () => readonly string[] | undefined;
  readonly appArmorProblem: string | undefined;
};

export class PodAdmission {
  readonly #deps: PodAdmissionDeps;
  readonly #o: PodAdmissionOptions;

  constructor(deps: PodAdmissionDeps, options: PodAdmissionOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  /**
   * `others`: the pods admitted before and not yet terminated, with their allocated resources. Pods that make room for
   * this one are evicted before it settles.
   */
  async admit(pod: Pod, others: readonly Pod[], signal: AbortSignal): Promise<AdmissionVerdict> {
    const beside = others.filter((other) => uidOf(other) !== uidOf(pod) && !this.#makesRoom(other, pod));
    const verdict = await this.#decide(pod, beside, signal);
    if (verdict.ok) await this.makeRoom(verdict, signal);
    else this.rejectedLater(verdict.reason);
    return verdict;
  }

  /** Evicts the pods that go for the sake of a critical one. */
  async makeRoom({ victims, scarce = '' }: Omit<Admitted, 'ok'>, signal: AbortSignal): Promise<void> {
    if (victims.length === 0) return;
    this.#deps.preemptions?.inc({ preemption_signal: scarce }, victims.length);
    await evictVictims(this.#deps, victims, signal);
  }

  /** What a pod that runs already has, no pod on its way out can need: that one was only found again by a new agent. */
  #makesRoom(other: Pod, pod: Pod): boolean {
    return other.metadata.deletionTimestamp !== undefined && this.#deps.isRunning(pod);
  }

  /** Also of a pod that was admitted before and was rejected after all. */
  rejectedLater(reason: string): void {
    this.#deps.rejections?.inc({ reason: rejectionLabel(reason) });
  }

  async #decide(pod: Pod, others: readonly Pod[], signal: AbortSignal): Promise<AdmissionVerdict> {
    const { nodeConditions, isRunning, sysctls, shuttingDown, unsupportedVolume } = this.#deps;
    const unsupported = unsupportedVolume(pod);
    if (unsupported !== undefined) return { ok: false, reason: 'UnsupportedVolume', message: unsupported };
    // Which of the pods that run must go is for eviction to say, one after the other; not all of them at an agent's start.
    const pressures = isRunning(pod) ? [] : nodeConditions();
    const early = checkEvictionConditions(pod, pressures) ?? sysctls.check(pod) ?? (await this.#hooks(pod, signal));
    if (early !== undefined) return { ok: false, ...early };
    const verdict = await this.#predicates(pod, others, signal);
    if (!verdict.ok) return verdict;
    const late =
      checkAppArmor(pod, this.#o.appArmorProblem) ??
      checkPodLevelResources(pod, this.#o.podLevelResources) ??
      checkDeclaredFeatures(pod, this.#o.declaredFeatures()) ??
      checkShutdown(shuttingDown());
    return late === undefined ? verdict : { ok: false, ...late };
  }

  async #hooks(pod: Pod, signal: AbortSignal): Promise<Rejection | undefined> {
    const verdict = await this.#deps.hooks.admit(pod, signal);
    return verdict.ok ? undefined : verdict;
  }

  async #predicates(pod: Pod, others: readonly Pod[], signal: AbortSignal): Promise<AdmissionVerdict> {
    const allocated = this.#deps.allocatedDevices?.(pod) ?? new Map<string, number>();
    const known = this.#deps.node.node();
    if (known !== undefined && !hasCapacity(known) && this.#deps.isRunning(pod)) return { ok: true, victims: [] };
    let node = known && withAtLeast(known, allocated);
    if (node !== undefined && onlyNodeAffinityFails(pod, others, node)) {
      try {
        const fresh = await this.#deps.node.fresh(signal);
        if (fresh !== undefined) node = withAtLeast(fresh, allocated);
      } catch (err) {
        signal.throwIfAborted();
        this.#deps.log.warn('the node could not be read again, judging by what is known', { err: messageOf(err) });
      }
    }
    return checkPredicates(pod, others, node);
  }
}
