// Tells the runtime the node's pod range; runtimes that make their own network configuration need it.
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';

export interface RuntimeNetwork {
  setPodCidr(podCidr: string, signal: AbortSignal): Promise<void>;
}

export class PodCidr {
  readonly #runtime: RuntimeNetwork;
  readonly #log: Logger;
  #known = '';

  constructor(deps: { readonly runtime: RuntimeNetwork; readonly log: Logger }) {
    this.#runtime = deps.runtime;
    this.#log = deps.log;
  }

  /** One that was told before is not told again. A runtime that refuses it costs nothing but the network it would make. */
  async set(podCidr: string, signal: AbortSignal): Promise<void> {
    if (podCidr === '' || podCidr === this.#known) return;
    try {
      await this.#runtime.setPodCidr(podCidr, signal);
      this.#known = podCidr;
    } catch (err) {
      this.#log.error('the runtime did not take the pod range', { podCidr, err: messageOf(err) });
    }
  }
}
