// Lists a directory by find(1): a fifteenth of what a walk in this process costs, any depth, and it reads directories in
// parts. GNU's only: others cannot print blocks. It ends at its next line when this process is killed.
import { runChild } from '../host/mounts/child.ts';
import { LARGE_CHILD } from '../host/mounts/hung-children.ts';
import type { MountTable } from '../host/mounts/mount-table.ts';
import { isFault } from '../lib/errors.ts';
import type { Tally } from './tally.ts';

/** It keeps up to 100,000 names of each level, 45 MiB of long ones. */
const MAX_MEMORY = 256 * 1024 * 1024;
export const FIND: readonly string[] = ['prlimit', `--as=${MAX_MEMORY}`, 'find'];

/** Removed or replaced while it looked. The locale is fixed to C, and names in messages are quoted. */
const VANISHED = /: (No such file or directory|Not a directory|Too many levels of symbolic links)$/;
const MAX_LINE = 4_096;
const ENTRIES = ['(', '-type', 'd', '-o', '-links', '1', ')', '-printf', '%b\\n', '-o', '-printf', '%b %n %i\\n'];

/** False: there is no such program here, it met something it could not read, or its memory did not suffice. */
export async function findEntries(
  [program = '', ...args]: readonly string[],
  path: string,
  mounts: MountTable,
  tally: Tally,
  signal: AbortSignal,
): Promise<boolean> {
  const others = mounts.beneath(path).filter(({ target }) => target !== path);
  const skipped = others.flatMap(({ target }, i) => [...(i === 0 ? [] : ['-o']), '-path', literally(target)]);
  const rules = others.length === 0 ? ENTRIES : ['(', ...skipped, ')', '-prune', '-o', ...ENTRIES];
  let hasListed = false;
  let hasFailed = false;
  const onStdout = byLine((line) => {
    const [blocks = NaN, names = 1, inode = 0] = line.split(' ').map(Number);
    hasListed = true;
    if (blocks >= 0) tally.add(blocks, names, inode);
    else hasFailed = true;
  });
  const onStderr = byLine((line) => void (hasFailed ||= !VANISHED.test(line)));
  const find = [...args, path, '-xdev', '-ignore_readdir_race', ...rules];
  try {
    const { code } = await runChild(program, find, signal, { onStdout, onStderr }, { cost: LARGE_CHILD });
    // 1: something could not be read, which is told.
    return hasListed && !hasFailed && code <= 1;
  } catch (err) {
    if (signal.aborted || !isFault(err, 'unavailable')) throw err;
    return false;
  }
}

/** For a test that takes patterns. */
const literally = (path: string): string => path.replace(/[\\*?[]/g, '\\$&');

/** Of a very long line (the path of what vanished) the end is what counts. */
function byLine(onLine: (line: string) => void): (chunk: Buffer) => void {
  let rest = '';
  return (chunk) => {
    const lines = (rest + chunk.toString('latin1')).split('\n');
    rest = (lines.pop() ?? '').slice(-MAX_LINE);
    for (const line of lines) onLine(line);
  };
}
