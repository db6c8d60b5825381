// In-place resize, done: the pod's cgroup and its containers get their new values in the planned order.
import type { CriRuntime } from '../cri/services.ts';
import { goQuote } from '../core/downward.ts';
import { findContainer, uidOf, type Pod, type ResourceRequirements } from '../core/pod.ts';
import { milliOf, quantity, toNumber } from '../core/quantity.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import { fullErrorText, GrpcError } from '../lib/grpc/status.ts';
import {
  containerResources,
  milliToQuota,
  milliToShares,
  sandboxOverhead,
  type LinuxResources,
} from './linux-resources.ts';
import type { RuntimeFacts } from './facts.ts';
import type { ResizeRecords, ResourceManager } from './needs.ts';
import { planResize, type PodValues, type ResizeStep } from './resize-plan.ts';

type PodUpdate = Extract<ResizeStep, { do: 'pod' }>;
type ContainerUpdate = Extract<ResizeStep, { do: 'container' }>;

/** As the runtime is told that there is no limit. */
const UNLIMITED = -1;

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
    const throttling = this.#isUnthrottled(pod) ? { ...this.#facts, cpuCfsQuota: false } : this.#facts;
    const steps = planResize(pod, snapshot, records.actuatedOf(uidOf(pod)), throttling, restarting);
    await this.#verifyMemory(pod, steps, records, signal);
    for (const step of steps) {
      if (step.do === 'pod') await this.#updatePod(pod, sandboxId, step, records, signal);
      else if (step.do === 'container') await this.#updateContainer(pod, step, records, signal);
      else if (step.name === undefined) records.setActuatedPod(uidOf(pod), step.resources);
      else records.setActuated(uidOf(pod), step.name, step.resources);
    }
  }

  /** Containers of the pod own their CPUs: its cgroup has no quota, whatever the limits say. */
  #isUnthrottled(pod: Pod): boolean {
    return this.#resources.hooks?.hasExclusiveCpus(pod) ?? false;
  }

  /** A limit below what is in use would make the kernel kill at once. */
  async #verifyMemory(
    pod: Pod,
    steps: readonly ResizeStep[],
    records: ResizeRecords,
    signal: AbortSignal,
  ): Promise<void> {
    const problems: string[] = [];
    // What is wrong with the pod comes first.
    for (const step of steps.toSorted((a, b) => Number(b.do === 'pod') - Number(a.do === 'pod'))) {
      const limit = loweredMemory(step);
      if (limit === undefined) continue;
      const usage =
        step.do === 'container' ? await this.#usageOf(step.id, signal) : await records.memoryUsageOf(pod, signal);
      if (usage === undefined || usage < limit) continue;
      const whose = step.do === 'container' ? `container ${goQuote(step.name)}` : 'pod';
      problems.push(`attempting to set ${whose} memory limit (${limit}) below current usage (${usage})`);
    }
    if (problems.length === 0) return;
    const all = problems.length === 1 ? problems.join() : `[${problems.join(', ')}]`;
    throw new KubeletError('invalid', `cannot decrease memory limits: ${all}`);
  }

  async #usageOf(containerId: string, signal: AbortSignal): Promise<number | undefined> {
    const { stats } = await this.#cri.containerStats({ containerId }, signal);
    const usage = stats?.memory?.usageBytes?.value;
    return usage === undefined ? undefined : Number(usage);
  }

  async #updatePod(
    pod: Pod,
    sandboxId: string,
    { values, previous, changed }: PodUpdate,
    records: ResizeRecords,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await this.#tellSandbox(pod, sandboxId, values, signal);
    } catch (cause) {
      const resource = changed === 'memoryLimitBytes' ? 'memory' : 'cpu';
      const text = `failed to notify runtime for UpdatePodSandboxResources (resource=${resource}); resize rejected: ${fullErrorText(cause)}`;
      throw new KubeletError('internal', text, { cause });
    }
    try {
      await records.writePod(pod, changed, values[changed], signal);
    } catch (err) {
      // What failed first is what there is to tell.
      await this.#tellSandbox(pod, sandboxId, previous, signal).catch(() => undefined);
      throw err;
    }
  }

  /** Runtimes that do not know the verb need not know the values. */
  async #tellSandbox(pod: Pod, podSandboxId: string, all: PodValues, signal: AbortSignal): Promise<void> {
    const { cpuShares, cpuQuota, memoryLimitBytes } = withoutOverhead(all, pod, this.#facts);
    const resources: LinuxResources = {
      cpuPeriod: this.#facts.cpuCfsPeriodUs,
      cpuQuota: cpuQuota === 0 ? UNLIMITED : cpuQuota,
      cpuShares,
      memoryLimitInBytes: memoryLimitBytes === 0 ? UNLIMITED : memoryLimitBytes,
    };
    try {
      const overhead = sandboxOverhead(pod, this.#facts);
      await this.#cri.updatePodSandboxResources({ podSandboxId, overhead, resources }, signal);
    } catch (err) {
      if (!isUnimplemented(err)) throw err;
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
    // Not asked as for a new container: CPUs and memory nodes stay as they are, and a device plugin would prepare once more.
    const exclusiveCpus = this.#resources.hooks?.ownsCpus(pod, container) ?? false;
    const linux = containerResources(pod, sized, this.#facts, { exclusiveCpus });
    await this.#cri.updateContainerResources({ containerId: id, linux }, signal);
    records.setActuated(uidOf(pod), name, resources);
  }
}

/** containerd 2.2 has the verb with nothing behind it, and tells so under a code that tells nothing. */
const isUnimplemented = (err: unknown): boolean =>
  isFault(err, 'unimplemented') ||
  (err instanceof GrpcError && err.codeName === 'Unknown' && err.message.includes('not implemented'));

/** The new memory limit where a step lowers one. */
function loweredMemory(step: ResizeStep): number | undefined {
  if (step.do === 'record' || (step.do === 'pod' && step.changed !== 'memoryLimitBytes')) return undefined;
  const memoryOf = (resources: ResourceRequirements): number => toNumber(quantity(resources.limits?.['memory']));
  const [now, before] =
    step.do === 'pod'
      ? [step.values.memoryLimitBytes, step.previous.memoryLimitBytes]
      : [memoryOf(step.resources), memoryOf(step.previous)];
  return now > 0 && (before === 0 || now < before) ? now : undefined;
}

/** The runtime is told the overhead apart from the rest. */
function withoutOverhead(values: PodValues, pod: Pod, facts: RuntimeFacts): PodValues {
  const { cpu, memory } = pod.spec.overhead ?? {};
  const cpuMilli = milliOf(cpu);
  const { cpuShares, cpuQuota, memoryLimitBytes } = values;
  return {
    cpuShares: cpuMilli === 0 ? cpuShares : milliToShares(Math.ceil((cpuShares * 1000) / 1024) - cpuMilli),
    cpuQuota: cpuQuota === 0 ? 0 : cpuQuota - milliToQuota(cpuMilli, facts.cpuCfsPeriodUs),
    memoryLimitBytes: memoryLimitBytes === 0 ? 0 : memoryLimitBytes - toNumber(quantity(memory)),
  };
}
