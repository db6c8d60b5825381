// `kube/dial.ts` without sockets: a connection to the API server stands when its network is reachable.
import type { Clock } from '../../../src/lib/clock.ts';
import { KubeletError } from '../../../src/lib/errors.ts';
import { machine } from '../engine/machine.ts';
import { Socket } from './net.ts';

export function dial(_clock: Clock, o: { server: URL; timeoutMs: number }, signal: AbortSignal): Promise<unknown> {
  signal.throwIfAborted();
  const { scheduler, network } = machine();
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    const late = scheduler.after(o.timeoutMs, () =>
      reject(new KubeletError('unavailable', `no connection to ${o.server.host} in ${o.timeoutMs}ms`)),
    );
    scheduler.after(1 + 2 * scheduler.latency.next(), () => {
      const reach = network.api.reach();
      if (reach === 'silent') return;
      late.cancel();
      signal.removeEventListener('abort', onAbort);
      if (reach === 'yes') return resolve({ socket: new Socket(), protocol: 'h2' });
      const detail = { errno: 'ECONNREFUSED', absent: true };
      reject(new KubeletError('unavailable', `connect ECONNREFUSED ${o.server.host}`, { detail }));
    });
  });
}
