// The composition root: builds the parts and runs them until told to stop.
import type { KubeletConfig } from './config/config-fields.ts';
import type { FeatureGates } from './config/feature-gates.ts';
import type { KubeletFlags } from './config/flags.ts';
import type { ConfigUpdates } from './config/updates.ts';
import type { LogLevels } from './host/process/log-levels.ts';
import type { LogOutput } from './host/process/log-output.ts';
import type { Systemd } from './host/process/sd-notify.ts';
import { Watchdog } from './host/process/watchdog.ts';
import { aborted } from './lib/abort.ts';
import type { Clock } from './lib/clock.ts';
import type { Logger } from './lib/logger.ts';
import { supervise, type Runnable } from './lib/supervise.ts';
import { HealthzServer } from './server/healthz.ts';

export type KubeletOptions = {
  readonly config: KubeletConfig;
  readonly flags: KubeletFlags;
  /** Every flag as /flagz shows it. */
  readonly flagValues: ReadonlyMap<string, string>;
  readonly gates: FeatureGates;
  readonly log: Logger;
  readonly logLevels: LogLevels;
  readonly logOutput: LogOutput;
  readonly clock: Clock;
  readonly systemd: Systemd;
  readonly updates: ConfigUpdates;
};

const STUCK_LOG_MS = 2 * 60_000;

export async function runKubelet(options: KubeletOptions, signal: AbortSignal): Promise<void> {
  const { config, clock, log, logOutput, systemd } = options;
  const parts: Runnable[] = [{ name: 'until-stopped', run: (stop) => aborted(stop) }];
  if (config.healthzPort > 0)
    parts.push(
      new HealthzServer(
        { clock, log: log.child({ component: 'healthz' }) },
        { address: config.healthzBindAddress, port: config.healthzPort },
      ),
    );
  if (systemd.watchdogMs !== undefined)
    parts.push(
      new Watchdog(
        { systemd, clock, log, failing: () => (logOutput.stuckForMs() > STUCK_LOG_MS ? 'log' : undefined) },
        { intervalMs: systemd.watchdogMs },
      ),
    );
  systemd.notify('READY=1');
  await supervise(parts, log, signal);
}
