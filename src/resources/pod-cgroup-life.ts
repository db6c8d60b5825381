// A pod's cgroup comes and goes with its worker; the weights of the tiers above follow.
import type { PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';

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
  /** Pods as they were when their tier was last weighed: what asks for another weight is another object. */
  readonly #weighed = new WeakSet<Pod>();

  constructor(deps: PodCgroupLifeDeps) {
    this.#deps = deps;
  }

  exists(pod: Pod, signal: AbortSignal): Promise<boolean> {
    return this.#deps.cgroups.exists(pod, signal);
  }

  async ensure(pod: Pod, signal: AbortSignal): Promise<void> {
    const { cgroups, tiers, onMade } = this.#deps;
    const isWeighed = this.#weighed.has(pod);
    const [made] = await Promise.all([cgroups.ensure(pod, signal), isWeighed ? undefined : tiers().refresh(signal)]);
    this.#weighed.add(pod);
    if (made) onMade(pod);
  }

  async destroy(pod: Pod | PodUid, signal: AbortSignal): Promise<void> {
    const { cgroups, tiers } = this.#deps;
    await cgroups.destroy(pod, signal);
    await tiers().refresh(signal);
  }
}
