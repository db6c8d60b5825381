// Runs a command, or Node's test runner over some files, to its end or to its limit.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Results } from './test-results.ts';

export const MINUTE = 60_000;
const REPORTER = join(import.meta.dirname, 'test-results.ts');

export type Isolation = 'own process' | 'shared process';
/** Low: only what others leave of the processors. */
export type Priority = 'usual' | 'low';
const LOW = 10;

export type Outcome = {
  readonly name: string;
  /** The test files; none for a command. */
  readonly files: readonly string[];
  readonly ok: boolean;
  readonly output: string;
  readonly tookMs: number;
  readonly results: Results | undefined;
};

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
      resolve({ name, files: [], ok: code === 0, output, tookMs: performance.now() - from, results: undefined });
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

function readResults(file: string): Results | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Results;
  } catch {
    return undefined; // The process was killed before it wrote them.
  }
}

export async function runTests(
  name: string,
  files: readonly string[],
  how: { readonly isolation: Isolation; readonly priority: Priority },
  limitMs: number,
): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'results-'));
  const resultsFile = join(folder, 'results.json');
  const args = [
    '--disable-warning=ExperimentalWarning',
    '--test',
    ...(how.isolation === 'shared process' ? ['--test-isolation=none'] : []),
    `--test-timeout=${how.isolation === 'shared process' ? 2 * MINUTE : 5 * MINUTE}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${REPORTER}`,
    `--test-reporter-destination=${resultsFile}`,
    ...files,
  ];
  const outcome = await runCommand(name, process.execPath, args, limitMs, how.priority);
  const results = readResults(resultsFile);
  rmSync(folder, { recursive: true, force: true });
  return { ...outcome, files, results };
}
