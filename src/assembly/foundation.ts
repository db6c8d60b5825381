// What every part is built from: configuration, clock, log, metrics, the node's name and where things are on disk.
import { hostname } from 'node:os';
import type { KubeletConfig } from '../config/config-fields.ts';
import type { FeatureGates } from '../config/feature-gates.ts';
import type { KubeletFlags } from '../config/flags.ts';
import type { ConfigUpdates } from '../config/updates.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { Registry } from '../lib/metrics.ts';

export type Foundation = {
  readonly config: KubeletConfig;
  readonly flags: KubeletFlags;
  readonly gates: FeatureGates;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  /** Served apart, on /metrics/probes. */
  readonly probeRegistry: Registry;
  readonly nodeName: string;
  /** The configuration as it changes; parts that read it here follow a SIGHUP. */
  readonly updates: ConfigUpdates;
};

/** Options read from the configuration in force at every use: `fields` can change while the kubelet runs. */
export function live<T>(
  { updates }: Pick<Foundation, 'updates'>,
  fields: readonly string[],
  read: (updates: ConfigUpdates) => T,
): T {
  updates.subscribe(fields, () => undefined);
  return read(updates);
}

export const buildFoundation = (parts: Omit<Foundation, 'registry' | 'probeRegistry' | 'nodeName'>): Foundation => ({
  ...parts,
  registry: new Registry(),
  probeRegistry: new Registry(),
  nodeName: nodeNameOf(parts.flags.hostnameOverride),
});

function nodeNameOf(override: string): string {
  const name = (override.trim() === '' ? hostname() : override).trim().toLowerCase();
  if (name === '') throw new KubeletError('invalid', 'empty hostname is invalid');
  return name;
}
