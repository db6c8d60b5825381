// Runs one system tool as a child process: argv only, bounded output, killed with its own children (mount(8) has helpers)
// when the signal aborts. A child that sits in an uninterruptible call cannot be killed; it is left behind, the caller is
// answered all the same, and the same question is not asked again while the child is there.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import { hungChildren, type Question } from './hung-children.ts';

/** `output`: what it wrote to both, as text without blanks around it. */
export type ChildResult = { readonly code: number; readonly output: string };
export type ChildRun = ChildResult & { readonly stdout: Buffer };
/**
 * For work that can wait: others go first, and it is the first to go where memory runs out. What it writes is passed on
 * instead of kept.
 */
export type BackgroundWork = { readonly onStdout: (chunk: Buffer) => void; readonly onStderr: (chunk: Buffer) => void };

const MAX_OUTPUT = 16 * 1024;
const LOWEST_PRIORITY = constants.priority.PRIORITY_LOW;

/** `asks`: what the child finds out; its command line by default. */
export async function runChild(
  command: string,
  args: readonly string[],
  signal: AbortSignal,
  background?: BackgroundWork,
  asks: Partial<Question> = {},
): Promise<ChildRun> {
  const question = { about: [command, ...args].join(' '), ...asks };
  await hungChildren.admit(question, signal);
  return startChild(command, args, signal, question, background);
}

function startChild(
  command: string,
  args: readonly string[],
  signal: AbortSignal,
  question: Question,
  background?: BackgroundWork,
): Promise<ChildRun> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(abortError(signal));
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: TOOL_PATH, LC_ALL: 'C' },
      // A process group of its own, so that all of it can be killed.
      detached: true,
    });
    if (background !== undefined) stepBack(child.pid);
    let output = '';
    const collect = (chunk: Buffer): void => {
      if (output.length < MAX_OUTPUT) output += chunk.toString('utf8');
    };
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => {
      if (background !== undefined) return background.onStdout(chunk);
      if (output.length < MAX_OUTPUT) chunks.push(chunk);
      collect(chunk);
    });
    child.stderr.on('data', background?.onStderr ?? collect);
    const onAbort = (): void => {
      killGroup(child.pid);
      hungChildren.killed(child, question);
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref();
      reject(abortError(signal));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    child.on('error', (err) => {
      signal.removeEventListener('abort', onAbort);
      reject(new KubeletError('unavailable', `cannot run ${command}: ${err.message}`, { cause: err }));
    });
    child.on('close', (code) => {
      signal.removeEventListener('abort', onAbort);
      resolve({
        code: code ?? 128,
        output: output.slice(0, MAX_OUTPUT).trim(),
        stdout: Buffer.concat(chunks).subarray(0, MAX_OUTPUT),
      });
    });
  });
}

function stepBack(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    setPriority(pid, LOWEST_PRIORITY);
    writeFileSync(`/proc/${pid}/oom_score_adj`, '1000');
  } catch {
    // It ended by itself meanwhile, or may not be told: it is no less useful.
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (err) {
    // It ended by itself meanwhile.
    if (errnoOf(err) !== 'ESRCH') throw err;
  }
}

const TOOL_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const abortError = (signal: AbortSignal): Error =>
  signal.reason instanceof Error ? signal.reason : new KubeletError('cancelled', 'cancelled');
