// Both halves of services on a node: rules for their addresses, a server for their names.
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import type { ObjectStore } from '../api/store.ts';
import type { PodNetwork } from '../containerd/config.ts';
import { DnsServer } from './dns-server.ts';
import { ServiceProxy } from './service-proxy.ts';

const AGAIN_MS = 5000;

/** Until `signal` aborts. */
export async function runServices(
  deps: { readonly store: ObjectStore; readonly clock: Clock; readonly log: Logger },
  network: PodNetwork,
  signal: AbortSignal,
): Promise<void> {
  const answerNames = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        await new DnsServer(deps, { host: network.gateway }).run(signal);
      } catch (err) {
        if (signal.aborted) return;
        deps.log.warn('names of services cannot be answered', { address: network.gateway, err });
        await deps.clock.sleep(AGAIN_MS, signal);
      }
    }
  };
  await Promise.all([new ServiceProxy(deps, network).run(signal), answerNames()]);
}
