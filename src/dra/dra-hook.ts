// Claimed devices as the runtime sees them: containers get the CDI devices of their claims at each start. Whether a pod gets
// its claims is the scheduler's decision.
import type { Container, Pod } from '../core/pod.ts';
import { ContainerStartError } from '../core/reasons.ts';
import { messageOf } from '../lib/errors.ts';
import type { ContainerAdditions, ContainerManagerHook } from '../resources/container-manager-hook.ts';
import type { DraManager } from './dra-manager.ts';

export class DraHook implements ContainerManagerHook {
  readonly name = 'dra';
  readonly #dra: DraManager;

  constructor(dra: DraManager) {
    this.#dra = dra;
  }

  async preCreate(pod: Pod, container: Container): Promise<ContainerAdditions> {
    try {
      const cdiDevices = this.#dra.cdiDevicesOf(pod, container);
      return cdiDevices.length === 0 ? {} : { cdiDevices };
    } catch (err) {
      throw new ContainerStartError('CreateContainerConfigError', messageOf(err), err);
    }
  }
}
