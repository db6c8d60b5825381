// Runs a command, or Node's test runner over some files, to its end or to its limit.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import type { Outcome } from './test-report.ts';

export const MINUTE = 60_000;

/** These change what belongs to their whole process, the umask for one. */
export const OWN_PROCESS: readonly string[] = ['src/host/process/process.test.ts', 'src/volumes/atomic-writer.test.ts'];

export type Isolation = 'own process' | 'shared process';
/** Low: only what others leave of the processors. */
export type Priority = 'usual' | 'low';
const LOW = 10;

/** A test that never ends must not hold up everything for ever. */
export function runCommand(
  name: string,
  command: string,
  args: readonly string[],
  limitMs: number,
  priority: Priority = 'usual',
): Promise<Outcome> {
  const from = performance.now();
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let isOver = false;
  const limit = setTimeout(() => {
    isOver = true;
    if (child.pid !== undefined) killTree(child.pid);
  }, limitMs);
  if (priority === 'low' && child.pid !== undefined) setPriority(child.pid, LOW);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      clearTimeout(limit);
      if (isOver) output += `\nended at its limit of ${limitMs / MINUTE} minutes\n`;
      else if (signal !== null) output += `\nended by ${signal}\n`;
      resolve({ name, ok: code === 0, output, tookMs: performance.now() - from });
    });
  });
}

/** With its children: the test runner is not the process that hangs, and whatever that started waits for it. */
function killTree(pid: number): void {
  let children: string[] = [];
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended meanwhile.
  }
  for (const child of children) killTree(Number(child));
}

export const runTests = (
  name: string,
  files: readonly string[],
  how: { readonly isolation: Isolation; readonly priority: Priority },
  limitMs: number,
): Promise<Outcome> =>
  runCommand(
    name,
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      '--test',
      ...(how.isolation === 'shared process' ? ['--test-isolation=none'] : []),
      `--test-timeout=${5 * MINUTE}`,
      ...files,
    ],
    limitMs,
    how.priority,
  );
