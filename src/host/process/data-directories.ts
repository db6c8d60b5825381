// The directories a kubelet keeps, and their modes.
import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CONTAINER_LOGS } from '../../core/log-links.ts';
import { isUnwritable, KubeletError, messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/logger.ts';

export type DataDirectories = {
  readonly root: string;
  readonly pods: string;
  readonly plugins: string;
  readonly pluginsRegistry: string;
  readonly podResources: string;
  readonly checkpoints: string;
};

const dataDirectories = (root: string): DataDirectories => ({
  root,
  pods: join(root, 'pods'),
  plugins: join(root, 'plugins'),
  pluginsRegistry: join(root, 'plugins_registry'),
  podResources: join(root, 'pod-resources'),
  checkpoints: join(root, 'checkpoints'),
});

/**
 * Makes what is missing. Directories that exist keep their mode. Without the root directory and `pods` there is no kubelet; the
 * others may be missing on a full or read-only disk: parts that need one make it later.
 */
export function ensureDataDirectories(
  root: string,
  podLogsDir: string,
  log: Logger,
  containerLogs = CONTAINER_LOGS,
): DataDirectories {
  const dirs = dataDirectories(root);
  for (const path of [dirs.root, dirs.pods]) make(path, 0o750);
  const optional: readonly (readonly [path: string, mode: number])[] = [
    [dirs.plugins, 0o750],
    [dirs.pluginsRegistry, 0o750],
    [dirs.podResources, 0o750],
    [dirs.checkpoints, 0o700],
    [containerLogs, 0o755],
  ];
  const makeIfPossible = (path: string, mode: number, isTolerable: (err: unknown) => boolean): void => {
    try {
      make(path, mode);
    } catch (err) {
      if (!isTolerable(err)) throw err;
      log.error('directory is missing', { path, err });
    }
  };
  for (const [path, mode] of optional) makeIfPossible(path, mode, () => true);
  // Pods need it: only a disk that takes nothing is waited for, a mistake in the configuration is not. What containers print
  // is not for every user of the machine.
  makeIfPossible(podLogsDir, 0o750, (err) => err instanceof Error && isUnwritable(err.cause));
  return dirs;
}

function make(path: string, mode: number): void {
  try {
    if (makePath(path, mode)) chmodSync(path, mode); // the umask took its share of the mode
  } catch (err) {
    throw new KubeletError('denied', `error creating directory ${path}: ${messageOf(err)}`, { cause: err });
  }
}

/** True when `path` was made now. One step at a time: Node's own way never ends where a parent refuses with ENOENT (/proc). */
function makePath(path: string, mode: number): boolean {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return false;
  const parent = dirname(path);
  if (parent !== path) makePath(parent, 0o755);
  mkdirSync(path, { mode });
  return true;
}
