// Runs one system tool as a child process: argv only, bounded output, killed with its own children (mount(8) has helpers)
// when the signal aborts. A child that sits in an uninterruptible call cannot be killed; it is left behind and the caller
// is answered all the same.
import { spawn } from 'node:child_process';
import { errnoOf, KubeletError } from '../../lib/errors.ts';

/** `output`: what it wrote to both, as text without blanks around it. */
export type ChildResult = { readonly code: number; readonly output: string };
export type ChildRun = ChildResult & { readonly stdout: Buffer };

const MAX_OUTPUT = 16 * 1024;

export function runChild(command: string, args: readonly string[], signal: AbortSignal): Promise<ChildRun> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(abortError(signal));
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: TOOL_PATH, LC_ALL: 'C' },
      // A process group of its own, so that all of it can be killed.
      detached: true,
    });
    let output = '';
    const collect = (chunk: Buffer): void => {
      if (output.length < MAX_OUTPUT) output += chunk.toString('utf8');
    };
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => {
      if (output.length < MAX_OUTPUT) chunks.push(chunk);
      collect(chunk);
    });
    child.stderr.on('data', collect);
    const onAbort = (): void => {
      killGroup(child.pid);
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
