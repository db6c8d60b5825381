// A TCP probe succeeds when somebody accepts the connection. It is then closed in order, as upstream does: a reset would
// save a socket in TIME_WAIT, which costs nothing, and have every server log a broken connection per probe.
import { connect } from 'node:net';
import type { Clock } from '../lib/clock.ts';
import { dialErrorText, hostPort } from './net-errors.ts';
import { hostOf, portOf, type Answer, type Prober } from './prober.ts';

export const tcpProber =
  (clock: Clock): Prober =>
  async ({ probe, container, podIp, timeoutMs }, signal) => {
    const host = hostOf(probe.tcpSocket?.host, podIp);
    const port = portOf(probe.tcpSocket?.port ?? 0, container);
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port, autoSelectFamily: false });
      const finish = (answer: Answer | undefined): void => {
        timer.cancel();
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
      socket.once('error', (err) => finish({ result: 'failure', output: dialErrorText(err, host, port) }));
    });
  };
