// A TCP probe succeeds when somebody accepts the connection. It is then closed in order, as upstream does: a reset would
// save a socket in TIME_WAIT, which costs nothing, and have every server log a broken connection per probe.
import { connect, isIP } from 'node:net';
import { childScope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { NameLookup } from '../lib/name-lookup.ts';
import { dialErrorText, hostPort } from './net-errors.ts';
import { hostOf, portOf, type Answer, type Prober } from './prober.ts';

export const tcpProber =
  (clock: Clock, names: NameLookup): Prober =>
  async ({ probe, container, podIp, timeoutMs }, signal) => {
    const host = hostOf(probe.tcpSocket?.host, podIp);
    const port = portOf(probe.tcpSocket?.port ?? 0, container);
    const scope = isIP(host) === 0 ? childScope(signal) : undefined;
    return new Promise((resolve, reject) => {
      // A name may have addresses of both kinds, of which one is served.
      const named = scope === undefined ? {} : { lookup: names.until(scope.signal) };
      const socket = connect({ host, port, autoSelectFamily: scope !== undefined, ...named });
      const finish = (answer: Answer | undefined): void => {
        timer.cancel();
        scope?.abort();
        scope?.release();
        signal.removeEventListener('abort', onAbort);
        socket.destroy();
        if (answer !== undefined) resolve(answer);
        else reject(signal.reason as Error);
      };
      const onAbort = (): void => finish(undefined);
      const timer = clock.after(timeoutMs, () =>
        finish({ result: 'failure', output: `dial tcp ${hostPort(host, port)}: i/o timeout` }),
      );
      signal.addEventListener('abort', onAbort, { once: true });
      socket.once('connect', () => finish({ result: 'success', output: '' }));
      socket.on('error', (err) => finish({ result: 'failure', output: dialErrorText(err, host, port) }));
    });
  };
