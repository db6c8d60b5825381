// A pod's cgroup comes and goes with its worker; the weights of the tiers above follow.
import type { PodUid } from '../core/ids.ts';
import type { Pod, PodSpec } from '../core/pod.ts';
import { qosClassOf } from '../core/qos.ts';
import { settleAll } from '../lib/settle.ts';

export type PodCgroupLifeDeps = {
  readonly cgroups: {
    exists(pod: Pod, signal: AbortSignal): Promise<boolean>;
    ensure(pod: Pod, signal: AbortSignal): Promise<boolean>;
    destroy(pod: Pod | PodUid, signal: AbortSignal): Promise<void>;
  };
  /** Never rejects but for the signal: no pod depends on the weight of its tier. */
  readonly tiers: () => { refresh(signal: AbortSignal): Promise<void> };
  /** The cgroup was made, with what the pod was granted: later grants must be brought into it. */
  readonly onMade: (pod: Pod) => void;
};

export class PodCgroupLife {
  readonly #deps: PodCgroupLifeDeps;
  /** Specs of pods as they were when their tier was last weighed: what asks for another weight is another object. */
  readonly #weighed = new WeakSet<PodSpec>();

  constructor(deps: PodCgroupLifeDeps) {
    this.#deps = deps;
  }

  exists(pod: Pod, signal: AbortSignal): Promise<boolean> {
    return this.#deps.cgroups.exists(pod, signal);
  }

  /** `isThere`: it was just seen to exist. */
  async ensure(pod: Pod, signal: AbortSignal, isThere = false): Promise<void> {
    const { cgroups, tiers, onMade } = this.#deps;
    const isWeighed = weighsNothing(pod) || this.#weighed.has(pod.spec);
    const [made] = await settleAll<[boolean, void]>([
      isThere ? Promise.resolve(false) : cgroups.ensure(pod, signal),
      isWeighed ? Promise.resolve() : tiers().refresh(signal),
    ]);
    this.#weighed.add(pod.spec);
    if (made) onMade(pod);
  }

  async destroy(pod: Pod | PodUid, signal: AbortSignal): Promise<void> {
    const { cgroups, tiers } = this.#deps;
    await cgroups.destroy(pod, signal);
    if (typeof pod === 'string' || !weighsNothing(pod)) await tiers().refresh(signal);
  }
}

/** A pod that asks for nothing changes the weight of no tier: to see that, all pods would have to be added up. */
const weighsNothing = (pod: Pod): boolean => qosClassOf(pod) === 'BestEffort';
