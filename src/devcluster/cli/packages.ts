// Installing what is missing from the distribution, on Debian and its relatives.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
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
  if ((await withoutServices(() => apt(install, signal))) === '') return;
  tell('refreshing the package lists (apt-get update)');
  await apt(['update'], signal);
  const complaint = await withoutServices(() => apt(install, signal));
  if (complaint !== '')
    throw new KubeletError('unavailable', `apt-get could not install ${packages.join(' ')}:\n${complaint}`);
}

const POLICY = '/usr/sbin/policy-rc.d';

/** Debian asks this file before it starts a service; one that was there before stays in charge. */
async function withoutServices<T>(work: () => Promise<T>): Promise<T> {
  if (existsSync(POLICY)) return work();
  await writeFile(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    return await work();
  } finally {
    await rm(POLICY, { force: true });
  }
}

/** Empty when all went well, else what it said last. */
function apt(args: readonly string[], signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('apt-get', ['-qq', ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      signal,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
    child.once('error', reject);
    child.once('close', (code) => resolve(code === 0 ? '' : lastLines(said) || `apt-get ended with ${code}`));
  });
}

const lastLines = (text: string): string => text.trim().split('\n').slice(-5).join('\n');
