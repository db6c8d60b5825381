// node:dns/promises of the simulated machine: it knows its own name, and has no name servers.
import { machine, later } from '../engine/machine.ts';

export const lookup = (name: string, options?: { all?: boolean }): Promise<unknown> =>
  later(1 + machine().scheduler.latency.next(), () => {
    if (name !== 'n1') throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' });
    const found = { address: '10.0.0.1', family: 4 };
    return options?.all === true ? [found] : found;
  });

const nobody = (name: string): Promise<never> =>
  later(machine().scheduler.latency.next(), () => {
    throw Object.assign(new Error(`queryA ECONNREFUSED ${name}`), { code: 'ECONNREFUSED' });
  });

export class Resolver {
  readonly resolve4 = nobody;
  readonly resolve6 = nobody;
  cancel(): void {}
}
