// The four means of probing, as one: what the composition root hands to the manager.
import type { Clock } from '../lib/clock.ts';
import { NameLookup } from '../lib/name-lookup.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { execProber, type ExecSync } from './exec-prober.ts';
import { grpcProber } from './grpc-prober.ts';
import { httpProber } from './http-prober.ts';
import { probeOnce, type Prober } from './prober.ts';
import { tcpProber } from './tcp-prober.ts';

const USER_AGENT = 'kube-probe/1.36';
/** More exec probes at once only make the runtime slower for everybody. */
const EXEC_AT_ONCE = 16;

export const containerProber = (
  clock: Clock,
  execSync: ExecSync,
  execAtOnce = EXEC_AT_ONCE,
  names = new NameLookup(),
): Prober =>
  probeOnce({
    exec: execProber(clock, execSync, new Semaphore(execAtOnce)),
    httpGet: httpProber(clock, names, USER_AGENT),
    tcpSocket: tcpProber(clock, names),
    grpc: grpcProber(clock, USER_AGENT),
  });
