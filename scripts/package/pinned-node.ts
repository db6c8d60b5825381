// The pinned Node of an architecture: the installed package, or its archive from the registry, checked against the lock file.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export type Arch = 'x64' | 'arm64';

const ROOT = join(import.meta.dirname, '..', '..');
const CACHE = join(homedir(), '.cache', 'kubelet-ts');

type Lock = { readonly packages: Readonly<Record<string, { readonly version: string; readonly integrity: string }>> };

/** The folder with `bin/node` and `LICENSE`. */
export function pinnedNode(arch: Arch): string {
  const name = `node-linux-${arch}`;
  const installed = join(ROOT, 'node_modules', name);
  if (existsSync(join(installed, 'bin', 'node'))) return installed;
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
  const wanted = lock.packages[`node_modules/${name}`];
  if (wanted === undefined) throw new Error(`package-lock.json does not know ${name}`);
  const kept = join(CACHE, `${name}-${wanted.version}`);
  if (!existsSync(join(kept, 'bin', 'node'))) download(`${name}@${wanted.version}`, wanted.integrity, kept);
  return kept;
}

function download(what: string, integrity: string, into: string): void {
  mkdirSync(CACHE, { recursive: true });
  const work = mkdtempSync(join(CACHE, 'download-'));
  try {
    const archive = execFileSync('npm', ['pack', '--silent', what], { cwd: work, encoding: 'utf8' }).trim();
    const sum = createHash('sha512')
      .update(readFileSync(join(work, archive)))
      .digest('base64');
    if (`sha512-${sum}` !== integrity) throw new Error(`${what} is not what package-lock.json asks for`);
    execFileSync('tar', ['-xzf', archive], { cwd: work });
    rmSync(into, { recursive: true, force: true });
    // Complete or not there at all.
    renameSync(join(work, 'package'), into);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
