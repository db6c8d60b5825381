// The logs that grow: those of running containers.
import type { PodSnapshot } from '../core/snapshot.ts';
import type { RunningLog } from './rotation.ts';

export const runningLogs = (snapshots: readonly PodSnapshot[]): readonly RunningLog[] =>
  snapshots
    .flatMap((pod) => pod.containers)
    .filter((c) => c.state === 'running' && c.logPath !== '')
    .map(({ id, logPath }) => ({ id, logPath }));
