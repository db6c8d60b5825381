// The change of ownership by a child process, for filesystems that may wait for a peer. A big volume may take as long as it
// needs; a child that gets no further for a minute is given up.
import { spawn } from 'node:child_process';
import { hungChildren, LARGE_CHILD, noAnswer, type Question } from '../host/mounts/hung-children.ts';
import { childScope } from '../lib/abort.ts';
import { partCommand } from '../lib/built.ts';
import { toolEnvironment } from '../lib/child-environment.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Ownership } from './ownership.ts';

const MAX_REASON = 2_000;

export type ElsewhereOpts = {
  /** How long it may get no further. */
  readonly idleMs?: number;
  /** Runs `ownership-child.ts`. */
  readonly command?: readonly string[];
  /** Some file stays as it is. */
  readonly onRefused?: (why: unknown) => void;
};

export async function giveToGroupElsewhere(
  clock: Clock,
  path: string,
  how: Ownership,
  signal: AbortSignal,
  onFile: () => void,
  opts: ElsewhereOpts = {},
): Promise<void> {
  const { idleMs = 60_000, command = partCommand('ownership-child', import.meta.url) } = opts;
  const scope = childScope(signal);
  const arm = () => clock.after(idleMs, () => scope.abort(noAnswer(path, idleMs, undefined)));
  let idle = arm();
  let seen = 0;
  try {
    const question: Question = { about: path, cost: LARGE_CHILD };
    await hungChildren.admit(question, scope.signal);
    const refused = await runOwnershipChild(command, JSON.stringify({ path, how }), question, scope.signal, (files) => {
      idle.cancel();
      idle = arm();
      for (; seen < files; seen++) onFile();
    });
    if (refused !== '') opts.onRefused?.(refused);
  } finally {
    idle.cancel();
    scope.release();
  }
}

function runOwnershipChild(
  command: readonly string[],
  input: string,
  question: Question,
  signal: AbortSignal,
  onFiles: (files: number) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const abortion = (): Error =>
      signal.reason instanceof Error ? signal.reason : new KubeletError('cancelled', 'cancelled');
    if (signal.aborted) return reject(abortion());
    const [program = '', ...args] = command;
    const child = spawn(program, [...args, input], { stdio: ['ignore', 'pipe', 'pipe'], env: toolEnvironment() });
    let reason = '';
    // Lines with the number so far; one that was cut in two only makes the news a little older.
    child.stdout.on('data', (chunk: Buffer) => onFiles(lastNumber(chunk.toString('latin1'))));
    child.stderr.on('data', (chunk: Buffer) => void (reason = (reason + chunk.toString('utf8')).slice(0, MAX_REASON)));
    const onAbort = (): void => {
      child.kill('SIGKILL');
      hungChildren.killed(child, question);
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref();
      reject(abortion());
    };
    signal.addEventListener('abort', onAbort, { once: true });
    child.on('error', (cause) => {
      signal.removeEventListener('abort', onAbort);
      reject(new KubeletError('unavailable', `cannot run ${program}: ${cause.message}`, { cause }));
    });
    child.on('close', (code) => {
      signal.removeEventListener('abort', onAbort);
      if (code === 0) resolve(reason);
      else reject(new KubeletError('unavailable', reason === '' ? `exit status ${code}` : reason));
    });
  });
}

/** Of the last line, if it is complete. */
const lastNumber = (text: string): number =>
  text.endsWith('\n') ? Number(text.slice(text.lastIndexOf('\n', text.length - 2) + 1)) : 0;
