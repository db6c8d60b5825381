// The kubelet's own health, for /healthz and for systemd's watchdog: the same checks in upstream's order.
import type { LogOutput } from '../host/process/log-output.ts';
import type { RuntimeHealth } from '../observe/runtime-health.ts';
import type { HealthCheck } from './health-checks.ts';

const STUCK_LOG_MS = 2 * 60_000;
const MIN_SYNC_LOOP_MS = 5 * 60_000;

export const processChecks = (log: Pick<LogOutput, 'stuckForMs'>): HealthCheck[] => [
  { name: 'ping', failing: () => undefined },
  { name: 'log', failing: () => (log.stuckForMs() > STUCK_LOG_MS ? 'log flush is stuck' : undefined) },
];

/** Upstream's sync loop stands still while the runtime is down or cannot be listed; here that is what is measured. */
export function nodeChecks(runtime: Pick<RuntimeHealth, 'sinceWellMs'>, syncFrequencyMs: number): HealthCheck[] {
  const limitMs = Math.max(2 * syncFrequencyMs, MIN_SYNC_LOOP_MS);
  const isLate = (): boolean => (runtime.sinceWellMs() ?? 0) > limitMs;
  return [{ name: 'syncloop', failing: () => (isLate() ? 'sync Loop took longer than expected' : undefined) }];
}
