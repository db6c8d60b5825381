// Installing what is missing from the distribution, on Debian and its relatives.
import { spawn } from 'node:child_process';
import { KubeletError } from '../../lib/errors.ts';
import { findProgram } from './machine.ts';

export const canInstall = (): boolean => findProgram('apt-get') !== undefined && process.getuid?.() === 0;

/** Services that come with a package are not started: what runs here is private. */
export async function installPackages(
  packages: readonly string[],
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const install = ['install', '-y', '--no-install-recommends', ...packages];
  tell(`installing ${packages.join(', ')} (apt-get)`);
  if ((await apt(install, signal)) === 0) return;
  tell('refreshing the package lists (apt-get update)');
  await apt(['update'], signal);
  if ((await apt(install, signal)) !== 0)
    throw new KubeletError('unavailable', `apt-get could not install ${packages.join(' ')}; run it by hand to see why`);
}

function apt(args: readonly string[], signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn('apt-get', ['-qq', ...args], {
      stdio: 'ignore',
      signal,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
    });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
