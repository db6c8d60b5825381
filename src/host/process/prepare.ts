// Everything the kubelet checks and sets on its machine before any part of it starts, in order.
import type { Logger } from '../../lib/logger.ts';
import { ensureDataDirectories } from './data-directories.ts';
import { applyKernelSettings, applyOomScoreAdj, applyOpenFileLimit, checkSwap } from './host-checks.ts';

export type HostSettings = {
  readonly failSwapOn: boolean;
  readonly protectKernelDefaults: boolean;
  readonly oomScoreAdj: number;
  readonly maxOpenFiles: number;
  readonly podLogsDir: string;
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
  const onlyReport = gates.enabled('KubeletInUserNamespace');
  applyKernelSettings({ protect: settings.protectKernelDefaults, onlyReport }, log);
  applyOpenFileLimit(settings.maxOpenFiles, log);
  applyOomScoreAdj(settings.oomScoreAdj, log);
  ensureDataDirectories(flags.rootDir, settings.podLogsDir);
}
