// Programs of later Debian releases than the one tests run on: the package is unpacked (never installed) into a cache
// folder. Several test files may want the same one at the same time: the first brings it, the others wait.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const cacheRoot = (): string => join(homedir(), '.cache', 'kubelet-ts');
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** The folder with the content of `name` in a version that starts with `version`; `program` is what must be in it. */
export async function unpackedPackage(name: string, version: string, program: string): Promise<string> {
  const home = join(cacheRoot(), `${name}-${version}`);
  await made(home, join(home, program), () => download([`${name}=${version}*`], home));
  return home;
}

/** The same of a Debian release, in whatever version that has by now. */
export async function releasedPackage(name: string, release: 'trixie' | 'sid', program: string): Promise<string> {
  const home = join(cacheRoot(), `${name}-${release}`);
  await made(home, join(home, program), () => download([`${name}/${release}`], home));
  return home;
}

/**
 * Packages of Debian's development release in one folder of this name; `finish` makes what was unpacked usable, and only
 * then is it kept.
 */
export async function unpackedTogether(
  name: string,
  packages: readonly string[],
  finish: (home: string) => Promise<void>,
): Promise<string> {
  const home = join(cacheRoot(), name);
  const done = join(home, '.finished');
  await made(home, done, async () => {
    await download(
      packages.map((p) => `${p}/sid`),
      home,
    );
    await finish(home);
    await writeFile(done, '');
  });
  return home;
}

/** `file` is there only when `home` is complete. The lock is held by a child, which ends with this process at the latest. */
async function made(home: string, file: string, make: () => Promise<void>): Promise<void> {
  if (existsSync(file)) return;
  await mkdir(cacheRoot(), { recursive: true });
  const command = ['-w', '600', `${home}.lock`, 'sh', '-c', 'echo held; exec cat'];
  const lock = spawn('flock', command, { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const refused = once(lock, 'close').then(() => Promise.reject(new Error(`${home}.lock could not be taken`)));
    await Promise.race([once(lock.stdout, 'data'), refused]);
    if (!existsSync(file)) await make();
  } finally {
    lock.stdin.end();
  }
}

async function download(packages: readonly string[], home: string): Promise<void> {
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
      // A mirror that stands still serves too; signatures are checked all the same.
      'Acquire::Check-Valid-Until=false',
    ].flatMap((o) => ['-o', o]);
    await run('apt-get', [...options, '-qq', 'update']);
    await run('apt-get', [...options, '-qq', 'download', ...packages], { cwd: work });
    const debs = (await readdir(work)).filter((f) => f.endsWith('.deb'));
    if (debs.length < packages.length) throw new Error(`not all found: ${packages.join(' ')}`);
    for (const deb of debs) await run('dpkg', ['-x', join(work, deb), join(work, 'unpacked')]);
    await rm(home, { recursive: true, force: true });
    await rename(join(work, 'unpacked'), home);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
