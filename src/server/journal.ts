// The node's own logs: journalctl with an argument list, and files below the log folder. Bounded in time.
import { spawn } from 'node:child_process';
import type { FileHandle } from 'node:fs/promises';
import { PassThrough, type Readable } from 'node:stream';
import { toolEnvironment } from '../lib/child-environment.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, KubeletError } from '../lib/errors.ts';
import { openBelow } from './log-files.ts';
import type { NodeLogs } from './node-log-query.ts';

const LIMIT_MS = 30_000;
const CHUNK = 64 * 1024;

export const nodeLogs = (clock: Clock, root: string): NodeLogs => ({
  isInJournal: async (service, signal) => {
    let out = '';
    try {
      for await (const chunk of journalctl(clock, ['--field', '_SYSTEMD_UNIT'], signal)) out += chunk.toString();
    } catch (err) {
      if (signal.aborted || !isMissing(err)) throw err;
    }
    return out.includes(`${service}.service`);
  },
  journal: (args, signal) => journalctl(clock, args, signal),
  file: async (path) => {
    const handle = await openBelow(root, path);
    if ((await handle.stat()).isFile()) return contents(handle);
    await handle.close();
    throw new KubeletError('notFound', `${path} is no file`);
  },
});

/** A machine without systemd has no journal. */
const isMissing = (err: unknown): boolean => errnoOf(err) === 'ENOENT';

async function* journalctl(clock: Clock, args: readonly string[], signal: AbortSignal): AsyncGenerator<Buffer> {
  const child = spawn('journalctl', args, { stdio: ['ignore', 'pipe', 'pipe'], env: toolEnvironment() });
  const failed = new Promise<never>((_, reject) => child.once('error', reject));
  failed.catch(() => undefined);
  const kill = (): void => void child.kill('SIGKILL');
  const timer = clock.after(LIMIT_MS, kill);
  signal.addEventListener('abort', kill, { once: true });
  try {
    if (child.pid === undefined) await failed;
    // What it complains about is for the reader too.
    for await (const chunk of merged(child.stdout, child.stderr)) yield chunk;
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', kill);
    kill();
  }
}

function merged(...streams: readonly Readable[]): AsyncIterable<Buffer> {
  const all = new PassThrough();
  let open = streams.length;
  for (const stream of streams) {
    stream.once('end', () => --open === 0 && all.end());
    stream.pipe(all, { end: false });
  }
  return all as AsyncIterable<Buffer>;
}

async function* contents(handle: FileHandle): AsyncGenerator<Buffer> {
  try {
    for (;;) {
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}
