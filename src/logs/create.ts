// Fits the parts of this folder together: rotation of the logs of what runs, with limits that follow the configuration.
import type { Environment } from '../config/environment.ts';
import type { CriRuntime } from '../cri/services.ts';
import { quantity, toNumber } from '../core/quantity.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { QueueMetrics } from './queue-metrics.ts';
import { LogRotation } from './rotation.ts';
import { runningLogs } from './running-logs.ts';

export type LogRotationParts = {
  readonly runtime: Pick<CriRuntime, 'reopenContainerLog'>;
  readonly observed: { all(): readonly PodSnapshot[] };
};

export const createLogRotation = (
  { clock, config, log, registry, updates }: Environment,
  { runtime, observed }: LogRotationParts,
): LogRotation =>
  new LogRotation(
    {
      clock,
      log: log.child({ component: 'log-rotation' }),
      queue: new QueueMetrics(clock, registry),
      runningLogs: () => runningLogs(observed.all()),
      reopen: async (containerId, signal) => void (await runtime.reopenContainerLog({ containerId }, signal)),
    },
    updates.live(['containerLogMaxSize', 'containerLogMaxFiles'], (now) => ({
      get maxSizeBytes() {
        return toNumber(quantity(now.current.containerLogMaxSize));
      },
      get maxFiles() {
        return now.current.containerLogMaxFiles;
      },
      intervalMs: config.containerLogMonitorIntervalMs,
      workers: config.containerLogMaxWorkers,
    })),
  );
