// The kubectl binaries tests run: the distribution's own, and newer ones from Debian's packages. KUBECTL_BINARIES
// (colon-separated paths) names others instead of the newer ones, for instance where there is no network.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { releasedPackage } from './debian-package.ts';

export type Kubectl = {
  readonly version: string;
  /** May be older than some commands: Debian 12 has 1.20. */
  readonly old: boolean;
  path(): Promise<string>;
};

/** Debian's stable release (1.32) and its development release (1.36 or newer). */
const RELEASES = ['trixie', 'sid'] as const;

export function kubectls(): readonly Kubectl[] {
  const named = (process.env['KUBECTL_BINARIES'] ?? '').split(':').filter(Boolean);
  const onPath = (process.env['PATH'] ?? '').split(':').map((d) => join(d, 'kubectl'));
  const own = onPath.filter((p) => existsSync(p)).slice(0, 1);
  const at = (path: string, old: boolean): Kubectl => ({ version: path, old, path: () => Promise.resolve(path) });
  const newer = RELEASES.map((release) => ({
    version: `of ${release}`,
    old: false,
    path: async () => join(await releasedPackage('kubectl', release, 'usr/bin/kubectl'), 'usr/bin/kubectl'),
  }));
  return [...own.map((p) => at(p, true)), ...(named.length > 0 ? named.map((p) => at(p, false)) : newer)];
}
