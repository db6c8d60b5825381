// What every feature is built from: the configuration, the clock, the log, the metrics and the node's name. The `create`
// functions of the features take it; the parts inside them take what they need of it.
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Registry } from '../lib/metrics.ts';
import type { KubeletConfig } from './config-fields.ts';
import type { FeatureGates } from './feature-gates.ts';
import type { KubeletFlags } from './flags.ts';
import type { ConfigUpdates } from './updates.ts';

export type Environment = {
  readonly config: KubeletConfig;
  readonly flags: KubeletFlags;
  readonly gates: Pick<FeatureGates, 'enabled' | 'entries'>;
  /** The configuration as it changes; parts that read it here follow a SIGHUP. */
  readonly updates: ConfigUpdates;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  readonly nodeName: string;
};
