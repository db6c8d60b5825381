// Runs a command, or Node's test runner over some files, to its end or to its limit.
import { spawn } from 'node:child_process';
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
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: limitMs, killSignal: 'SIGKILL' });
  if (priority === 'low' && child.pid !== undefined) setPriority(child.pid, LOW);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      if (signal !== null) output += `\nended by ${signal}; the limit is ${limitMs / MINUTE} minutes\n`;
      resolve({ name, ok: code === 0, output, tookMs: performance.now() - from });
    });
  });
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
