// `node scripts/test-arm64.ts [folder…]`: the unit tests on the pinned Node for arm64 under qemu-user, on an x64 machine. Needs
// root, the network once, and Debian's qemu-user-static and debootstrap. Slow: some minutes; not part of `npm test`.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pinnedNode } from './package/pinned-node.ts';

const ROOT = join(import.meta.dirname, '..');
const QEMU = 'qemu-aarch64-static';
const LIBRARIES = ['libc6', 'libstdc++6', 'libgcc-s1', 'libatomic1'];

/** Files whose tests start programs by name or themselves: the emulator would have to be known to the kernel. */
const STARTS_PROGRAMS = /from 'node:child_process'|spawn|execFile|Worker|startContainerd|bin\/kubelet/;

/** The four libraries Node is linked to, for arm64. */
function libraries(): string {
  const kept = join(homedir(), '.cache', 'kubelet-ts', 'arm64-libraries');
  if (existsSync(kept)) return kept;
  const work = `${kept}.${process.pid}`;
  mkdirSync(join(work, 'root'), { recursive: true });
  const fetch = [
    '--arch=arm64',
    '--foreign',
    '--variant=minbase',
    `--include=${LIBRARIES.join(',')}`,
    'bookworm',
    work,
  ];
  execFileSync('debootstrap', fetch, { stdio: ['ignore', 'ignore', 'inherit'] });
  for (const name of LIBRARIES)
    for (const deb of globSync(join(work, 'var/cache/apt/archives', `${name}_*.deb`)))
      execFileSync('dpkg-deb', ['-x', deb, join(work, 'root')]);
  renameSync(join(work, 'root'), kept);
  rmSync(work, { recursive: true, force: true });
  return kept;
}

function startsPrograms(file: string): boolean {
  return spawnSync('grep', ['-qE', STARTS_PROGRAMS.source, join(ROOT, file)]).status === 0;
}

const folders = process.argv.length > 2 ? process.argv.slice(2) : ['src'];
const all = folders.flatMap((folder) => globSync(`${folder}/**/*.test.ts`, { cwd: ROOT })).sort();
const files = all.filter((file) => !startsPrograms(file));
const node = join(pinnedNode('arm64'), 'bin', 'node');
const args = ['--disable-warning=ExperimentalWarning', '--test', '--test-isolation=none', '--test-timeout=1200000'];
console.log(`${files.length} of ${all.length} files; the others start programs`);
const { status } = spawnSync(QEMU, ['-L', libraries(), node, ...args, ...files], { cwd: ROOT, stdio: 'inherit' });
process.exit(status ?? 1);
