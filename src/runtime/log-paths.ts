// Where logs live: `<podLogsDir>/<ns>_<name>_<uid>/<container>/<n>.log`, and the flat links that log shippers read.
import { join } from 'node:path';
import { namespaceOf, type Pod } from '../core/pod.ts';

const MAX_FILE_NAME = 255;

export const podLogDirName = (namespace: string, name: string, uid: string): string => `${namespace}_${name}_${uid}`;

export const podLogDir = (podLogsDir: string, pod: Pod): string =>
  join(podLogsDir, podLogDirName(namespaceOf(pod), pod.metadata.name, pod.metadata.uid ?? ''));

/** Relative to the pod's log directory. */
export const containerLogPath = (container: string, restartCount: number): string =>
  join(container, `${restartCount}.log`);

export function logLinkName(podName: string, namespace: string, container: string, containerId: string): string {
  const suffix = '.log';
  return `${podName}_${namespace}_${container}-${containerId}`.slice(0, MAX_FILE_NAME - suffix.length) + suffix;
}

/** The restart count a container gets when the runtime forgot its earlier instances: one more than its newest log. */
export function restartCountFromLogs(files: readonly string[]): number {
  const numbers = files.map((file) => /^(\d+)\.log(\..*)?$/.exec(file)?.[1]).filter((n) => n !== undefined);
  return numbers.length === 0 ? 0 : 1 + Math.max(...numbers.map(Number));
}
