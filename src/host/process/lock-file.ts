// The lock file: one kubelet per lock. The lock is flock(2)'s, the one the Go kubelet takes, so each keeps the other out.
// It belongs to the open file and goes with the process, however that ends.
import { closeSync, openSync, readSync } from 'node:fs';
import { toolEnvironment } from '../../lib/child-environment.ts';
import type { Clock } from '../../lib/clock.ts';
import { errnoOf, isFault, KubeletError, messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import { flockExclusive, watchOpens } from '../libc.ts';

const RETRY_MS = 250;

export interface HeldLock {
  release(): void;
}

/** Waits until the lock is ours. */
export async function acquireLockFile(path: string, clock: Clock, log: Logger, signal: AbortSignal): Promise<HeldLock> {
  let fd: number;
  try {
    fd = openSync(path, 'a+', 0o600);
  } catch (err) {
    throw new KubeletError('denied', `unable to acquire file lock on ${JSON.stringify(path)}: ${messageOf(err)}`, {
      cause: err,
    });
  }
  try {
    for (let reported = false; !(await tryLock(fd)); reported = true) {
      if (!reported) log.warn('the lock file is held by another process, waiting', { path });
      await clock.sleep(RETRY_MS, signal);
      signal.throwIfAborted();
    }
  } catch (err) {
    closeSync(fd);
    throw err;
  }
  return { release: () => closeSync(fd) };
}

async function tryLock(fd: number): Promise<boolean> {
  try {
    flockExclusive(fd);
    return true;
  } catch (err) {
    if (isFault(err, 'conflict')) return false;
    if (isFault(err, 'unimplemented')) return lockByCommand(fd);
    throw err;
  }
}

const CONTENDED = 75;

/** util-linux's flock on our own open file: the lock stays with the file after the command has gone. */
async function lockByCommand(fd: number): Promise<boolean> {
  const { spawn } = await import('node:child_process');
  return new Promise((resolve, reject) => {
    const child = spawn('flock', ['--nonblock', '--conflict-exit-code', String(CONTENDED), '3'], {
      stdio: ['ignore', 'ignore', 'ignore', fd],
      env: toolEnvironment(),
    });
    child.once('error', (err) => reject(new KubeletError('internal', `flock: ${messageOf(err)}`, { cause: err })));
    child.once('exit', (code) => {
      if (code === 0 || code === CONTENDED) resolve(code === 0);
      else reject(new KubeletError('internal', `flock ended with ${code}`));
    });
  });
}

/** Resolves when somebody opens or deletes the lock file, which is how another kubelet asks for it, or on abort. */
export async function lockContended(path: string, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const fd = watchOpens(path);
  const events = Buffer.alloc(4096);
  try {
    while (!signal.aborted) {
      if (hasEvents(fd, events)) return true;
      await clock.sleep(RETRY_MS, signal);
    }
    return false;
  } finally {
    closeSync(fd);
  }
}

function hasEvents(fd: number, into: Buffer): boolean {
  try {
    return readSync(fd, into) > 0;
  } catch (err) {
    if (errnoOf(err) === 'EAGAIN') return false;
    throw err;
  }
}
