// Finds containerd in the version a test wants. 1.6 is the distribution's own package; newer ones come from later Debian
// releases.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { unpackedPackage } from './debian-package.ts';

export type ContainerdVersion = '1.6' | '1.7' | '2.1';
export type Binaries = { readonly containerd: string; readonly ctr: string; readonly binDir: string };

const binariesIn = (binDir: string): Binaries => ({
  containerd: join(binDir, 'containerd'),
  ctr: join(binDir, 'ctr'),
  binDir,
});

export async function findContainerd(version: ContainerdVersion): Promise<Binaries> {
  if (version === '1.6') {
    if (!existsSync('/usr/bin/containerd')) throw new Error('containerd is not installed (apt-get install containerd)');
    return binariesIn('/usr/bin');
  }
  return binariesIn(join(await unpackedPackage('containerd', version, 'usr/bin/containerd'), 'usr/bin'));
}

/** Which of these versions cannot be had, and why: a machine without the internet still runs the other tests. */
export async function missingContainerds(
  versions: readonly ContainerdVersion[],
): Promise<ReadonlyMap<ContainerdVersion, string>> {
  const missing = new Map<ContainerdVersion, string>();
  for (const version of versions) {
    try {
      await findContainerd(version);
    } catch (err) {
      missing.set(version, `containerd ${version}: ${err instanceof Error ? err.message : String(err)}`);
    }
  }
  return missing;
}
