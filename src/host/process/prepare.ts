// Everything the kubelet checks and sets on its machine before any part of it starts, in order.
import type { Logger } from '../../lib/logger.ts';
import { checkCgroupRoot } from './cgroup-root.ts';
import { ensureDataDirectories } from './data-directories.ts';
import { applyKernelSettings, applyOomScoreAdj, applyOpenFileLimit, checkSwap } from './host-checks.ts';
import { shareRootDir } from './share-root.ts';
import { spreadPods } from './spread-pods.ts';

export type HostSettings = {
  readonly failSwapOn: boolean;
  readonly protectKernelDefaults: boolean;
  readonly oomScoreAdj: number;
  readonly maxOpenFiles: number;
  readonly podLogsDir: string;
  readonly cgroupsPerQOS: boolean;
  readonly cgroupRoot: string;
};

interface Gates {
  enabled(name: string): boolean;
}

export function prepareHost(
  settings: HostSettings,
  flags: { readonly rootDir: string },
  gates: Gates,
  log: Logger,
): void {
  checkSwap(settings.failSwapOn, log);
  if (settings.cgroupsPerQOS) checkCgroupRoot(settings.cgroupRoot);
  const onlyReport = gates.enabled('KubeletInUserNamespace');
  applyKernelSettings({ protect: settings.protectKernelDefaults, onlyReport }, log);
  applyOpenFileLimit(settings.maxOpenFiles, log);
  applyOomScoreAdj(settings.oomScoreAdj, log);
  const { pods } = ensureDataDirectories(flags.rootDir, settings.podLogsDir, log);
  shareRootDir(flags.rootDir, log);
  spreadPods([pods, settings.podLogsDir], log);
}
