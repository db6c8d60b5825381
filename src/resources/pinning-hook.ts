// The CPU, memory and topology managers as one hook into the life of pods and containers.
import { uidOf, type Container, type Pod } from '../core/pod.ts';
import type { ContainerAdditions, ContainerManagerHook, HookVerdict } from './container-manager-hook.ts';
import type { CpuManager } from './cpu/cpu-manager.ts';
import type { MemoryManager } from './memory/memory-manager.ts';
import type { TopologyManager } from './topology/topology-manager.ts';

export type PinningHookDeps = {
  readonly cpu: CpuManager;
  readonly memory: MemoryManager;
  readonly topology: TopologyManager;
};

export class PinningHook implements ContainerManagerHook {
  readonly name = 'pinning';
  readonly #deps: PinningHookDeps;

  constructor(deps: PinningHookDeps) {
    this.#deps = deps;
  }

  async admit(pod: Pod, signal: AbortSignal): Promise<HookVerdict> {
    const { cpu, memory, topology } = this.#deps;
    // What pods that are gone still hold would only stand in the way.
    cpu.removeStale();
    memory.removeStale();
    const rejection = await topology.admit(pod, signal);
    return rejection === undefined ? { ok: true } : { ok: false, ...rejection };
  }

  async preCreate(pod: Pod, container: Container): Promise<ContainerAdditions> {
    const [pin, mems] = await Promise.all([this.#deps.cpu.pin(pod, container), this.#deps.memory.pin(pod, container)]);
    return {
      ...(pin !== undefined && { cpusetCpus: pin.cpus, exclusiveCpus: pin.exclusive }),
      ...(mems !== undefined && { cpusetMems: mems }),
    };
  }

  preStart(pod: Pod, container: Container, containerId: string): Promise<void> {
    this.#deps.cpu.created(uidOf(pod), container.name, containerId);
    this.#deps.memory.created(pod, container);
    return Promise.resolve();
  }

  /** A container that stops keeps what it has: it may start again. Its pod's end is what counts. */
  postStop(): void {}

  hasExclusiveCpus(pod: Pod): boolean {
    return this.#deps.cpu.hasExclusiveCpus(pod);
  }

  ownsCpus(pod: Pod, container: Container): boolean {
    return this.#deps.cpu.ownsCpus(pod, container);
  }
}
