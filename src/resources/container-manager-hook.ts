// The seam for managers that hand out particular CPUs, memory nodes and devices. Hooks are asked in their order (device,
// CPU, memory; a topology manager is one hook that asks the others). Without hooks nothing is pinned.
import type { PodUid } from '../core/ids.ts';
import type { Container, Pod } from '../core/pod.ts';

export type HookVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly message: string };

/** What a hook adds to a container's configuration before it is created. */
export type ContainerAdditions = {
  /** The container owns its CPUs and is not throttled. */
  readonly exclusiveCpus?: boolean;
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly mounts?: readonly {
    readonly containerPath: string;
    readonly hostPath: string;
    readonly readonly: boolean;
  }[];
  readonly devices?: readonly {
    readonly containerPath: string;
    readonly hostPath: string;
    readonly permissions: string;
  }[];
  readonly cdiDevices?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
};

export interface ContainerManagerHook {
  readonly name: string;
  /** Reserves what the pod needs, or says why it cannot. Called once per pod, before it gets any cgroup. */
  admit?(pod: Pod, signal: AbortSignal): Promise<HookVerdict>;
  /** Called before every creation; a failure becomes the container's PreCreateHookError. */
  preCreate(pod: Pod, container: Container, signal: AbortSignal): Promise<ContainerAdditions>;
  /** Called between creation and start; a failure becomes PreStartHookError. */
  preStart?(pod: Pod, container: Container, containerId: string, signal: AbortSignal): Promise<void>;
  /** The container is gone; what it held may be used again. */
  postStop?(podUid: PodUid, containerName: string, containerId: string): void;
  /** Whether containers of the pod own whole CPUs, so that the pod must not be throttled. */
  hasExclusiveCpus?(pod: Pod): boolean;
  /** Whether this container does. Asked when it is resized; changes nothing. */
  ownsCpus?(pod: Pod, container: Container): boolean;
}

/** All hooks as one. Later additions win where they name the same thing. */
export class ContainerManagerHooks {
  readonly #hooks: readonly ContainerManagerHook[];

  constructor(hooks: readonly ContainerManagerHook[]) {
    this.#hooks = hooks;
  }

  async admit(pod: Pod, signal: AbortSignal): Promise<HookVerdict> {
    for (const hook of this.#hooks) {
      const verdict = await hook.admit?.(pod, signal);
      if (verdict?.ok === false) return verdict;
    }
    return { ok: true };
  }

  async preCreate(pod: Pod, container: Container, signal: AbortSignal): Promise<ContainerAdditions> {
    let all: ContainerAdditions = {};
    for (const hook of this.#hooks) {
      const own = await hook.preCreate(pod, container, signal);
      all = {
        ...all,
        ...own,
        env: [...(all.env ?? []), ...(own.env ?? [])],
        mounts: [...(all.mounts ?? []), ...(own.mounts ?? [])],
        devices: [...(all.devices ?? []), ...(own.devices ?? [])],
        cdiDevices: [...(all.cdiDevices ?? []), ...(own.cdiDevices ?? [])],
        annotations: { ...all.annotations, ...own.annotations },
      };
    }
    return all;
  }

  async preStart(pod: Pod, container: Container, containerId: string, signal: AbortSignal): Promise<void> {
    for (const hook of this.#hooks) await hook.preStart?.(pod, container, containerId, signal);
  }

  postStop(podUid: PodUid, containerName: string, containerId: string): void {
    for (const hook of this.#hooks) hook.postStop?.(podUid, containerName, containerId);
  }

  hasExclusiveCpus(pod: Pod): boolean {
    return this.#hooks.some((hook) => hook.hasExclusiveCpus?.(pod) ?? false);
  }

  ownsCpus(pod: Pod, container: Container): boolean {
    return this.#hooks.some((hook) => hook.ownsCpus?.(pod, container) ?? false);
  }
}
