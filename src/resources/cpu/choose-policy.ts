// The CPU manager policy that the configuration asks for. Pure.
import type { CpuSet } from '../../core/cpuset.ts';
import type { Quantity } from '../../core/quantity.ts';
import { toMilli } from '../../core/quantity.ts';
import type { MachineTopology } from '../../host/topology/machine-topology.ts';
import { KubeletError, messageOf } from '../../lib/errors.ts';
import { parseCpuOptions, type OptionGates } from './cpu-options.ts';
import { cpuTopology } from './cpu-topology.ts';
import { StaticPolicy } from './static-policy.ts';

export type CpuPolicyConfig = {
  readonly policy: string;
  readonly options: Readonly<Record<string, string>>;
  readonly gates: OptionGates;
  /** CPU time kept for the system and the kubelet. */
  readonly reservation: Quantity | undefined;
  /** `reservedSystemCPUs`. */
  readonly reservedCpus: CpuSet;
  readonly topologyPolicy: string;
  readonly podLevelManagers: boolean;
};

/** Undefined for policy `none`. */
export function chooseCpuPolicy(machine: MachineTopology, config: CpuPolicyConfig): StaticPolicy | undefined {
  const { policy, options, reservation } = config;
  const topology = cpuTopology(machine);
  if (policy === 'none') {
    const given = Object.entries(options).map(([name, value]) => `${name}:${value}`);
    if (given.length > 0)
      throw new KubeletError(
        'invalid',
        `new none policy error: None policy: received unsupported options=map[${given.sort().join(' ')}]`,
      );
    return undefined;
  }
  if (policy !== 'static') throw new KubeletError('invalid', `unknown policy: "${policy}"`);
  if (reservation === undefined || reservation.nano === 0n)
    throw new KubeletError('invalid', '[cpumanager] unable to determine reserved CPU resources for static policy');
  try {
    return new StaticPolicy(topology, {
      options: parseCpuOptions(options, config.gates),
      reservedCount: Math.ceil(toMilli(reservation) / 1000),
      reservedCpus: config.reservedCpus,
      topologyPolicy: config.topologyPolicy,
      podLevelManagers: config.podLevelManagers,
    });
  } catch (err) {
    throw new KubeletError('invalid', `new static policy error: ${messageOf(err)}`);
  }
}
