// The systemd watchdog: a sign of life at half the interval, for as long as the health checks pass. When they do not,
// silence makes systemd restart the kubelet.
import { formatDurationMs } from '../../core/duration.ts';
import type { Clock } from '../../lib/clock.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import { runEvery } from '../../lib/loop.ts';
import type { Systemd } from './sd-notify.ts';

/** The name of a check that fails, or undefined when all is well. */
export type FailingCheck = () => string | undefined;

type WatchdogDeps = {
  readonly systemd: Systemd;
  readonly failing: FailingCheck;
  readonly clock: Clock;
  readonly log: Logger;
};

const RETRIES = 2;
const RETRY_MS = 1000;

export class Watchdog {
  readonly name = 'watchdog';
  readonly #deps: WatchdogDeps;
  readonly #intervalMs: number;

  constructor(deps: WatchdogDeps, options: { intervalMs: number }) {
    if (options.intervalMs <= 1000) throw new KubeletError('invalid', 'configure watchdog timeout too small');
    this.#deps = deps;
    this.#intervalMs = options.intervalMs / 2;
  }

  run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    // Upstream's words: people look for them to see whether the watchdog is on.
    log.info('Starting systemd watchdog with interval', { interval: formatDurationMs(this.#intervalMs) });
    return runEvery(clock, log, { name: this.name, everyMs: this.#intervalMs }, () => this.#tick(signal), signal);
  }

  async #tick(signal: AbortSignal): Promise<void> {
    const { clock, failing, log, systemd } = this.#deps;
    for (let attempt = 0; attempt < RETRIES && !signal.aborted; attempt++) {
      const check = failing();
      if (check === undefined) return systemd.notify('WATCHDOG=1');
      log.error('a health check fails, systemd gets no sign of life', { check });
      if (attempt + 1 < RETRIES) await clock.sleep(RETRY_MS, signal);
    }
  }
}
