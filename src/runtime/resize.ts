// In-place resize, done: the pod's cgroup and its containers get their new values in the planned order.
import type { CriRuntime } from '../cri/services.ts';
import { findContainer, uidOf, type Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import { containerResources, sandboxOverhead, type LinuxResources } from './linux-resources.ts';
import type { RuntimeFacts } from './facts.ts';
import type { ResizeRecords, ResourceManager } from './needs.ts';
import { planResize, type PodValues, type ResizeStep } from './resize-plan.ts';

type PodUpdate = Extract<ResizeStep, { do: 'pod' }>;
type ContainerUpdate = Extract<ResizeStep, { do: 'container' }>;

export class Resizer {
  readonly #cri: CriRuntime;
  readonly #resources: ResourceManager;
  readonly #facts: RuntimeFacts;

  constructor(deps: { readonly cri: CriRuntime; readonly resources: ResourceManager }, facts: RuntimeFacts) {
    this.#cri = deps.cri;
    this.#resources = deps.resources;
    this.#facts = facts;
  }

  async resize(
    pod: Pod,
    snapshot: PodSnapshot,
    sandboxId: string,
    restarting: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<void> {
    const records = this.#resources.resize;
    if (records === undefined) return;
    const steps = planResize(pod, snapshot, records.actuatedOf(uidOf(pod)), this.#facts, restarting);
    await this.#verifyMemory(pod, steps, records, signal);
    for (const step of steps) {
      if (step.do === 'pod') await this.#updatePod(pod, sandboxId, step, records, signal);
      else await this.#updateContainer(pod, step, records, signal);
    }
  }

  /** A limit below what is in use would make the kernel kill at once. */
  async #verifyMemory(
    pod: Pod,
    steps: readonly ResizeStep[],
    records: ResizeRecords,
    signal: AbortSignal,
  ): Promise<void> {
    const lowered = steps.find(
      (step): step is PodUpdate =>
        step.do === 'pod' &&
        step.changed === 'memoryLimitBytes' &&
        step.values.memoryLimitBytes > 0 &&
        (step.previous.memoryLimitBytes === 0 || step.values.memoryLimitBytes < step.previous.memoryLimitBytes),
    );
    if (lowered === undefined) return;
    const usage = await records.memoryUsageOf(pod, signal);
    const limit = lowered.values.memoryLimitBytes;
    if (usage !== undefined && usage >= limit)
      throw new KubeletError(
        'invalid',
        `cannot decrease memory limits: attempting to set pod memory limit (${limit}) below current usage (${usage})`,
      );
  }

  async #updatePod(
    pod: Pod,
    sandboxId: string,
    { values, previous, changed }: PodUpdate,
    records: ResizeRecords,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#tellSandbox(pod, sandboxId, values, signal);
    try {
      await records.writePod(pod, changed, values[changed], signal);
    } catch (err) {
      await this.#tellSandbox(pod, sandboxId, previous, signal);
      throw err;
    }
  }

  /** Runtimes that do not know the verb need not know the values. */
  async #tellSandbox(pod: Pod, podSandboxId: string, values: PodValues, signal: AbortSignal): Promise<void> {
    const resources: LinuxResources = {
      ...(this.#facts.cpuCfsQuota ? { cpuPeriod: this.#facts.cpuCfsPeriodUs, cpuQuota: values.cpuQuota } : {}),
      cpuShares: values.cpuShares,
      memoryLimitInBytes: values.memoryLimitBytes,
    };
    try {
      const overhead = sandboxOverhead(pod, this.#facts);
      await this.#cri.updatePodSandboxResources({ podSandboxId, overhead, resources }, signal);
    } catch (err) {
      if (!isFault(err, 'unimplemented')) throw err;
    }
  }

  async #updateContainer(
    pod: Pod,
    { name, id, resources }: ContainerUpdate,
    records: ResizeRecords,
    signal: AbortSignal,
  ): Promise<void> {
    const container = findContainer(pod, name)?.container;
    if (container === undefined) return;
    const sized = { ...container, resources };
    const pinned = (await this.#resources.hooks?.preCreate(pod, sized, signal)) ?? {};
    const linux = containerResources(pod, sized, this.#facts, pinned);
    await this.#cri.updateContainerResources({ containerId: id, linux }, signal);
    records.setActuated(uidOf(pod), name, resources);
  }
}
