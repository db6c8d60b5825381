// Finds containerd in the version a test wants. 1.6 is the distribution's own package; newer ones come as packages from
// later Debian releases, unpacked (never installed) into a cache folder.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export type ContainerdVersion = '1.6' | '1.7' | '2.1';
export type Binaries = { readonly containerd: string; readonly ctr: string; readonly binDir: string };

const run = promisify(execFile);
const cacheRoot = (): string => join(homedir(), '.cache', 'kubelet-ts');
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

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
  const home = join(cacheRoot(), `containerd-${version}`);
  if (!existsSync(join(home, 'usr/bin/containerd'))) await download(version, home);
  return binariesIn(join(home, 'usr/bin'));
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

async function download(version: ContainerdVersion, home: string): Promise<void> {
  await mkdir(cacheRoot(), { recursive: true });
  const work = await mkdtemp(join(cacheRoot(), 'download-'));
  try {
    for (const dir of ['lists/partial', 'archives/partial', 'unpacked'])
      await mkdir(join(work, dir), { recursive: true });
    const lines = ['trixie', 'sid'].map((s) => `deb [signed-by=${KEYRING}] http://deb.debian.org/debian ${s} main\n`);
    await writeFile(join(work, 'sources.list'), lines.join(''));
    const options = [
      `Dir::Etc::sourcelist=${work}/sources.list`,
      'Dir::Etc::sourceparts=/dev/null',
      `Dir::State::lists=${work}/lists`,
      `Dir::Cache=${work}`,
      'APT::Sandbox::User=root',
    ].flatMap((o) => ['-o', o]);
    await run('apt-get', [...options, '-qq', 'update']);
    await run('apt-get', [...options, '-qq', 'download', `containerd=${version}*`], { cwd: work });
    const deb = (await readdir(work)).find((f) => f.endsWith('.deb'));
    if (deb === undefined) throw new Error(`no package containerd ${version} found`);
    await run('dpkg', ['-x', join(work, deb), join(work, 'unpacked')]);
    await rm(home, { recursive: true, force: true });
    await rename(join(work, 'unpacked'), home);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
