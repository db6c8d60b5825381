// `node scripts/test-arm64.ts [folder or file…]`: the unit tests on the pinned Node for arm64 under qemu-user, on an x64 machine.
// Needs root, the network once, and Debian's qemu-user-static and debootstrap. All of `src` takes more than an hour, a folder
// some minutes; not part of `npm test`.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pinnedNode } from './package/pinned-node.ts';
import { readTestFiles } from './test-plan.ts';

const ROOT = join(import.meta.dirname, '..');
const QEMU = 'qemu-aarch64-static';
const LIBRARIES = ['libc6', 'libstdc++6', 'libgcc-s1', 'libatomic1'];

const NEEDS_KERNEL = 'starts Node again, which the kernel cannot do without the emulator';

/** Files whose tests start programs by name or themselves: the emulator would have to be known to the kernel. */
const STARTS_PROGRAMS = /from 'node:child_process'|spawn|execFile|Worker|startContainerd|bin\/kubelet/;

/** Tests that say nothing under emulation, by name, and why. Everything else has to pass. */
const SAYS_NOTHING: Readonly<Record<string, string>> = {
  'of bombs come soon': 'bounds the time that decoding takes; emulated code is ten times slower',
  'are decoded elsewhere and hold up nothing': 'a large text has twenty seconds; emulated code needs longer',
  'a child changes the files and every one is counted': NEEDS_KERNEL,
  'a failure is told in the words of the child': NEEDS_KERNEL,
  'a child that gets no further is given up, one that does is not': 'starting a process takes seconds under emulation',
};

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

const exact = (name: string): string => `/^${name.replace(/[/.*+?()[\]{}|^$\\]/g, '\\$&')}$/`;
const wanted = process.argv.length > 2 ? process.argv.slice(2) : ['src'];
const all = wanted
  .flatMap((path) => (path.endsWith('.ts') ? [path] : globSync(`${path}/**/*.test.ts`, { cwd: ROOT })))
  .sort();
const files = all.filter((file) => !startsPrograms(file));
const ownProcess = new Set(readTestFiles().flatMap(({ file, words }) => (words.has('own process') ? [file] : [])));
const shared = files.filter((file) => !ownProcess.has(file));
const alone = files.filter((file) => ownProcess.has(file)).map((file) => [file]);
const node = join(pinnedNode('arm64'), 'bin', 'node');
const args = [
  '--disable-warning=ExperimentalWarning',
  '--test',
  '--test-isolation=none',
  '--test-timeout=1200000',
  ...Object.keys(SAYS_NOTHING).map((name) => `--test-skip-pattern=${exact(name)}`),
];
console.log(`${files.length} of ${all.length} files; the others start programs. Left out by name:`);
for (const [name, why] of Object.entries(SAYS_NOTHING)) console.log(`  ${name}: ${why}`);
const ended = [shared, ...alone]
  .filter((some) => some.length > 0)
  .map((some) => spawnSync(QEMU, ['-L', libraries(), node, ...args, ...some], { cwd: ROOT, stdio: 'inherit' }).status);
process.exit(ended.every((status) => status === 0) ? 0 : 1);
