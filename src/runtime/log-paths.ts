// Where logs live: `<podLogsDir>/<ns>_<name>_<uid>/<container>/<n>.log`.
import { join } from 'node:path';
import { namespaceOf, type Pod } from '../core/pod.ts';

const podLogDirName = (namespace: string, name: string, uid: string): string => `${namespace}_${name}_${uid}`;

export const podLogDir = (podLogsDir: string, pod: Pod): string =>
  join(podLogsDir, podLogDirName(namespaceOf(pod), pod.metadata.name, pod.metadata.uid ?? ''));

/** Relative to the pod's log directory. */
export const containerLogPath = (container: string, restartCount: number): string =>
  join(container, `${restartCount}.log`);

/** The restart count a container gets when the runtime forgot its earlier instances: one more than its newest log. */
export function restartCountFromLogs(files: readonly string[]): number {
  return files.reduce((count, file) => Math.max(count, 1 + numberOf(file)), 0);
}

/** -1 for what is no log of a start. A pod may have put any name there. */
const numberOf = (file: string): number => Number(/^(\d{1,9})\.log(\..*)?$/.exec(file)?.[1] ?? -1);

export const isNumberedLog = (file: string): boolean => numberOf(file) >= 0;
