// The directories a kubelet keeps, and their modes.
import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CONTAINER_LOGS } from '../../core/log-links.ts';
import { KubeletError, messageOf } from '../../lib/errors.ts';

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

/** Makes what is missing. Directories that exist keep their mode. */
export function ensureDataDirectories(
  root: string,
  podLogsDir: string,
  containerLogs = CONTAINER_LOGS,
): DataDirectories {
  const dirs = dataDirectories(root);
  for (const path of [dirs.root, dirs.pods, dirs.plugins, dirs.pluginsRegistry, dirs.podResources]) make(path, 0o750);
  make(dirs.checkpoints, 0o700);
  // What containers print is not for every user of the machine.
  make(podLogsDir, 0o750);
  make(containerLogs, 0o755);
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
