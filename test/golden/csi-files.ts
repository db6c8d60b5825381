// What the Go kubelet had on disk at each step of the recorded storage scenarios, and whether we have the same.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const RECORDINGS = join(import.meta.dirname, 'csi');
export const RECORDED_ROOT = '/var/lib/kubelet';
const SHARED = `${RECORDED_ROOT}/plugins/kubernetes.io/csi`;

/** `find`'s lines by the directory they are of, and the content of files by their path. */
type Sections = ReadonlyMap<string, readonly string[]>;

function sectionsOf(scenario: string, step: string): Sections {
  const text = readFileSync(join(RECORDINGS, scenario, 'files.txt'), 'utf8');
  const part = text.split(/^# /m).find((candidate) => candidate.startsWith(step));
  assert.ok(part !== undefined, `${scenario} has no step "${step}"`);
  return new Map(
    part
      .split(/^## /m)
      .slice(1)
      .map((section) => {
        const [heading = '', ...lines] = section.trimEnd().split('\n');
        return [heading.split(' ')[0] ?? '', lines] as const;
      }),
  );
}

/** Sizes of directories and links depend on where the root is; what is in a volume, and whose it is, on the driver. */
const comparable = (lines: readonly string[]): string[] =>
  lines
    .map((line) => line.replace(/^([dl]\S+ \S+) \d+/, '$1 -'))
    .filter((line) => !line.includes('/mount/'))
    .map((line) => line.replace(/^d\S+ \S+ (.*\/mount)$/, 'd mount $1'))
    .sort();

function listing(root: string, recorded: string): string[] {
  const directory = recorded.replace(RECORDED_ROOT, root);
  if (!existsSync(directory)) return [];
  const found = execFileSync('find', ['.', '-printf', '%M %U:%G %s %y %p -> %l\n'], { cwd: directory, encoding: 'utf8' });
  return comparable(found.replaceAll(root, RECORDED_ROOT).replaceAll(' -> \n', '\n').trimEnd().split('\n'));
}

/** `shared`: which lines of the directory of all CSI volumes are this scenario's; earlier ones left some there, too. */
export function assertSameFiles(root: string, scenario: string, step: string, shared: RegExp = /hostpath/): void {
  for (const [path, lines] of sectionsOf(scenario, step)) {
    const what = `${scenario}, ${step}: ${path}`;
    if (path.endsWith('vol_data.json'))
      assert.equal(readFileSync(path.replace(RECORDED_ROOT, root), 'utf8'), `${lines[0]}\n`, what);
    else if (path === SHARED)
      assert.deepEqual(
        listing(root, path).filter((line) => shared.test(line)),
        comparable(lines).filter((line) => shared.test(line)),
        what,
      );
    else if (path.startsWith(`${RECORDED_ROOT}/pods/`)) {
      const isVolume = (line: string): boolean => / \.\/volume(s|Devices)(\/|$)/.test(line);
      assert.deepEqual(listing(root, path).filter(isVolume), comparable(lines).filter(isVolume), what);
    }
  }
}
