// Finds containerd in the version a test wants, and a runc that can do what the distribution's cannot. containerd 1.6 is
// the distribution's own package; newer ones come from later Debian releases.
import { execFile } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { unpackedPackage, unpackedTogether } from './debian-package.ts';

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

const run = promisify(execFile);

/**
 * A folder with a runc that can map the owners of mounts (1.2 and later), which pods with users of their own need: the
 * machine's own (then empty), or a later release's.
 */
export async function findIdmapRunc(): Promise<string> {
  return (await canIdmap('runc')) ? '' : dirname((await laterRunc()).program);
}

/** A later release's runc, below `home` with the C library it was built for; both work at this path only. */
export async function laterRunc(): Promise<{ readonly home: string; readonly program: string }> {
  const home = await unpackedTogether('runc-idmap', ['runc', 'libc6', 'libseccomp2'], async (dir) => {
    const [libc] = globSync(join(dir, 'usr/lib/*-linux-gnu/libc.so.6'));
    const [loader] = globSync(join(dir, 'usr/lib/*-linux-gnu/ld-linux-*.so.*'));
    if (libc === undefined || loader === undefined) throw new Error('no C library beside the newer runc');
    const runc = join(dir, 'usr/sbin/runc');
    await run('patchelf', ['--set-interpreter', loader, '--set-rpath', dirname(libc), runc]);
    if (!(await canIdmap(runc))) throw new Error('the newer runc cannot map mounts either');
  });
  return { home, program: join(home, 'usr/sbin/runc') };
}

type RuncFeatures = { readonly linux?: { readonly mountExtensions?: { readonly idmap?: { enabled?: boolean } } } };
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

async function canIdmap(runc: string): Promise<boolean> {
  try {
    const { stdout } = await run(runc, ['features'], { env: { PATH: SYSTEM_PATH } });
    return (JSON.parse(stdout) as RuncFeatures).linux?.mountExtensions?.idmap?.enabled === true;
  } catch {
    return false; // not there, or too old to be asked
  }
}
