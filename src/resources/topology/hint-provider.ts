// What the topology manager asks of a manager that hands out particular CPUs, memory nodes or devices: where could this
// be had, and then: take it there.
import type { Container, Pod } from '../../core/pod.ts';

/** NUMA nodes, ascending; undefined is any node. */
export type TopologyHint = { readonly numaNodes: readonly number[] | undefined; readonly preferred: boolean };

/** By resource name. Undefined: no preference. Empty: it can be had nowhere. */
export type HintsByResource = Readonly<Record<string, readonly TopologyHint[] | undefined>>;

export interface HintProvider {
  readonly name: string;
  /** Where the container's resources could come from. */
  hints(pod: Pod, container: Container): HintsByResource;
  /** The same for all containers of the pod together. */
  podHints(pod: Pod): HintsByResource;
  /**
   * Takes what the container asks for, near `affinity`. What it already holds stays as it is.
   * Fails with a KubeletError; `detail.reason` is the pod's rejection reason where it is not UnexpectedAdmissionError.
   */
  allocate(pod: Pod, container: Container, affinity: TopologyHint, signal: AbortSignal): Promise<void>;
  /** Takes what a pod with resources of its own asks for as a whole. Without it every container is allocated. */
  allocatePod?(pod: Pod, affinity: TopologyHint, signal: AbortSignal): Promise<void>;
}
