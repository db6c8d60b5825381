// An environment for tests: default flags and configuration, with what a test says otherwise.
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import type { KubeletConfig } from './config-fields.ts';
import { completeConfig } from './convert.ts';
import type { Environment } from './environment.ts';
import { FeatureGates } from './feature-gates.ts';
import { kubeletFlags, type KubeletFlags } from './flags.ts';
import { ConfigUpdates } from './updates.ts';

export type Otherwise = {
  readonly config?: Partial<KubeletConfig>;
  readonly flags?: Partial<KubeletFlags>;
  readonly gates?: Readonly<Record<string, boolean>>;
};

export function environmentOf(otherwise: Otherwise = {}): Environment {
  const config = { ...completeConfig({}), ...otherwise.config };
  return {
    config,
    flags: { ...kubeletFlags(new Map()), ...otherwise.flags },
    gates: FeatureGates.fromKnown(otherwise.gates),
    updates: new ConfigUpdates(config),
    clock: new ManualClock(),
    log: silentLogger,
    registry: new Registry(),
    nodeName: 'node-1',
  };
}
