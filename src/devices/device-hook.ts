// The device manager as the runtime sees it: the devices given out at admission are handed to the container at each of its
// starts, the same ones until the pod is over. At admission the topology manager asks the device manager itself.
import { ContainerStartError } from '../core/reasons.ts';
import type { Container, Pod } from '../core/pod.ts';
import { messageOf } from '../lib/errors.ts';
import type { ContainerAdditions, ContainerManagerHook } from '../resources/container-manager-hook.ts';
import type { DeviceManager } from './device-manager.ts';

export class DeviceHook implements ContainerManagerHook {
  readonly name = 'devices';
  readonly #devices: DeviceManager;

  constructor(devices: DeviceManager) {
    this.#devices = devices;
  }

  async preCreate(pod: Pod, container: Container, signal: AbortSignal): Promise<ContainerAdditions> {
    try {
      return await this.#devices.optionsFor(pod, container, signal);
    } catch (err) {
      signal.throwIfAborted();
      throw new ContainerStartError('CreateContainerConfigError', messageOf(err), err);
    }
  }
}
