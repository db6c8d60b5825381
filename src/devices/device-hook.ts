// The device manager as the runtime sees it: the devices given out at admission are handed to the container at each of its
// starts.
import { ContainerStartError } from '../core/reasons.ts';
import type { Container, Pod } from '../core/pod.ts';
import { messageOf } from '../lib/errors.ts';
import type { ContainerAdditions, ContainerManagerHook, HookVerdict } from '../resources/container-manager-hook.ts';
import type { DeviceManager } from './device-manager.ts';

export class DeviceHook implements ContainerManagerHook {
  readonly name = 'devices';
  readonly #devices: DeviceManager;

  constructor(devices: DeviceManager) {
    this.#devices = devices;
  }

  /** Devices are given out by the topology manager, which asks the device manager first. */
  admit(): Promise<HookVerdict> {
    return Promise.resolve({ ok: true });
  }

  async preCreate(pod: Pod, container: Container, signal: AbortSignal): Promise<ContainerAdditions> {
    try {
      return await this.#devices.optionsFor(pod, container, signal);
    } catch (err) {
      signal.throwIfAborted();
      throw new ContainerStartError('CreateContainerConfigError', messageOf(err), err);
    }
  }

  preStart(): Promise<void> {
    return Promise.resolve();
  }

  /** Devices stay with the pod until it is over: a container that starts again has the same ones. */
  postStop(): void {}

  hasExclusiveCpus(): boolean {
    return false;
  }

  ownsCpus(): boolean {
    return false;
  }
}
