// Claimed devices as the runtime sees them: containers get the CDI devices of their claims at each start.
import type { Container, Pod } from '../core/pod.ts';
import { ContainerStartError } from '../core/reasons.ts';
import { messageOf } from '../lib/errors.ts';
import type { ContainerAdditions, ContainerManagerHook, HookVerdict } from '../resources/container-manager-hook.ts';
import type { DraManager } from './dra-manager.ts';

export class DraHook implements ContainerManagerHook {
  readonly name = 'dra';
  readonly #dra: DraManager;

  constructor(dra: DraManager) {
    this.#dra = dra;
  }

  /** The scheduler has decided about claims. */
  admit(): Promise<HookVerdict> {
    return Promise.resolve({ ok: true });
  }

  async preCreate(pod: Pod, container: Container): Promise<ContainerAdditions> {
    try {
      const cdiDevices = this.#dra.cdiDevicesOf(pod, container);
      return cdiDevices.length === 0 ? {} : { cdiDevices };
    } catch (err) {
      throw new ContainerStartError('CreateContainerConfigError', messageOf(err), err);
    }
  }

  preStart(): Promise<void> {
    return Promise.resolve();
  }

  postStop(): void {}

  hasExclusiveCpus(): boolean {
    return false;
  }

  ownsCpus(): boolean {
    return false;
  }
}
