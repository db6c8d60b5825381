// Keeps container logs small: renames a log that is full, has the runtime open a new one, compresses the older ones.
// A log is looked at every `containerLogMonitorInterval`, and sooner when it grows fast.
import { lstat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { ContainerId } from '../core/ids.ts';
import { childScope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { Semaphore } from '../lib/semaphore.ts';
import type { Runnable } from '../lib/supervise.ts';
import { LogDir } from './log-dir.ts';
import type { QueueMetrics } from './queue-metrics.ts';
import { COMPRESSED, TEMPORARY } from './rotated-files.ts';
import { nextLookMs, planRotated, rotatedName } from './rotation-plan.ts';

export type RunningLog = { readonly id: ContainerId; readonly logPath: string };

export type LogRotationDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  /** Logs of the containers that run now. */
  readonly runningLogs: (signal: AbortSignal) => readonly RunningLog[] | Promise<readonly RunningLog[]>;
  readonly queue?: Pick<QueueMetrics, 'item'>;
  /** Has the runtime open its log file anew. */
  readonly reopen: (id: ContainerId, signal: AbortSignal) => Promise<void>;
};
export type LogRotationOptions = {
  /** Negative: no rotation. */
  readonly maxSizeBytes: number;
  /** The current one included; at least 2. */
  readonly maxFiles: number;
  readonly intervalMs: number;
  readonly workers: number;
};

type Growth = { readonly size: number; readonly atMs: number; readonly bytesPerMs: number };

const COMPRESSIONS_AT_ONCE = 1;
const TEMPORARY_END = /\.tmp$/;

export class LogRotation implements Runnable {
  readonly name = 'log-rotation';
  readonly #deps: LogRotationDeps;
  readonly #opts: LogRotationOptions;
  readonly #workers: Semaphore;
  readonly #compressors = new Semaphore(COMPRESSIONS_AT_ONCE);
  /** Compression takes as long as it takes and holds up no rotation. */
  readonly #compressing = new Map<string, { readonly done: Promise<void>; readonly abort: () => void }>();
  #growth: ReadonlyMap<string, Growth> = new Map();

  constructor(deps: LogRotationDeps, opts: LogRotationOptions) {
    this.#deps = deps;
    this.#opts = opts;
    this.#workers = new Semaphore(Math.max(1, opts.workers));
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const { intervalMs } = this.#opts;
    await clock.sleep(intervalMs, signal);
    while (!signal.aborted) {
      try {
        // The limit may change while the kubelet runs.
        if (this.#opts.maxSizeBytes >= 0) await this.pass(signal);
      } catch (err) {
        if (!signal.aborted) log.error('log rotation failed', { err });
      }
      await clock.sleep(nextLookMs(this.#growth.values(), this.#opts.maxSizeBytes, intervalMs), signal);
    }
    await Promise.all([...this.#compressing.values()].map((job) => job.done));
  }

  /** Looks at every running container's log once. */
  async pass(signal: AbortSignal): Promise<void> {
    const growth = new Map<string, Growth>();
    const logs = await this.#deps.runningLogs(signal);
    const take = (work: () => Promise<void>): Promise<void> => this.#workers.run(signal, work);
    await Promise.all(
      logs.map((entry) => {
        const look = (): Promise<void> => this.#look(entry, growth, signal);
        return this.#deps.queue?.item(take, look) ?? take(look);
      }),
    );
    this.#growth = growth;
  }

  async #look(entry: RunningLog, growth: Map<string, Growth>, signal: AbortSignal): Promise<void> {
    try {
      await this.#check(entry, growth, signal);
    } catch (err) {
      if (!signal.aborted)
        this.#deps.log.error('container log not rotated', { containerId: entry.id, path: entry.logPath, err });
    }
  }

  async #check({ id, logPath }: RunningLog, growth: Map<string, Growth>, signal: AbortSignal): Promise<void> {
    const size = await sizeOf(logPath, this.#opts.maxSizeBytes);
    if (size === undefined) {
      // Somebody took it away, or an earlier rotation did not finish.
      await this.#deps.reopen(id, signal);
      return;
    }
    if (size >= this.#opts.maxSizeBytes) {
      await this.#rotate(id, logPath, signal);
      growth.set(logPath, { size: 0, atMs: this.#deps.clock.monotonic(), bytesPerMs: 0 });
      return;
    }
    const before = this.#growth.get(logPath);
    const atMs = this.#deps.clock.monotonic();
    const bytesPerMs = before === undefined || atMs <= before.atMs ? 0 : (size - before.size) / (atMs - before.atMs);
    growth.set(logPath, { size, atMs, bytesPerMs: Math.max(0, bytesPerMs) });
  }

  #rotate(id: ContainerId, logPath: string, signal: AbortSignal): Promise<void> {
    return LogDir.using(logPath, async (dir) => {
      const siblings = await dir.siblings(logPath);
      const plan = planRotated(logPath, siblings, this.#opts.maxFiles, true);
      for (const path of plan.leftovers)
        if (!this.#compressing.has(path.replace(TEMPORARY_END, ''))) await dir.remove(path);
      for (const path of plan.excess) await this.#remove(dir, path);
      const rotated = rotatedName(logPath, siblings, this.#deps.clock.now());
      await dir.rename(logPath, rotated);
      try {
        await this.#deps.reopen(id, signal);
      } catch (err) {
        await this.#putBack(dir, rotated, logPath);
        throw err;
      }
      this.#deps.log.debug('container log rotated', { containerId: id, path: rotated });
      for (const path of plan.compress) this.#compress(path, signal);
    });
  }

  async #remove(dir: LogDir, path: string): Promise<void> {
    const job = this.#compressing.get(path);
    job?.abort();
    await job?.done;
    await dir.remove(path);
    if (job !== undefined) await dir.remove(path + COMPRESSED);
  }

  /** Unless the runtime did open a new file after all: that one is in use and stays. */
  async #putBack(dir: LogDir, rotated: string, logPath: string): Promise<void> {
    try {
      await dir.link(rotated, logPath);
      await dir.remove(rotated);
    } catch (err) {
      if (errnoOf(err) !== 'EEXIST') this.#deps.log.error('container log not put back', { path: rotated, err });
    }
  }

  #compress(path: string, signal: AbortSignal): void {
    if (this.#compressing.has(path)) return;
    const scope = childScope(signal);
    const done = this.#compressors
      .run(scope.signal, () => compressFile(path, scope.signal))
      .catch((err: unknown) => {
        if (!scope.signal.aborted) this.#deps.log.error('rotated log not compressed', { path, err });
      })
      .finally(() => {
        scope.release();
        this.#compressing.delete(path);
      });
    this.#compressing.set(path, { done, abort: () => scope.abort() });
  }
}

/**
 * Most logs are small and need nothing but this look, so it is one call. A link in the place of a directory can at most tell
 * the size of another file: whatever follows goes through the directory held open.
 */
async function sizeOf(path: string, full: number): Promise<number | undefined> {
  try {
    const seen = await lstat(path);
    if (seen.isFile() && seen.size < full) return seen.size;
    return await LogDir.using(path, (dir) => dir.size(path));
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}

/** Writes beside it, renames, removes the plain one: whatever happens, one of the two is whole. */
const compressFile = (path: string, signal: AbortSignal): Promise<void> =>
  LogDir.using(path, async (dir) => {
    const temporary = path + TEMPORARY;
    const plain = await dir.read(path);
    try {
      const { mode } = await plain.stat();
      const packed = await dir.create(temporary, mode & 0o777);
      await pipeline(plain.createReadStream(), createGzip(), packed.createWriteStream({ flush: true }), { signal });
      await dir.rename(temporary, path + COMPRESSED);
    } catch (err) {
      await dir.remove(temporary);
      throw err;
    } finally {
      await plain.close();
    }
    await dir.remove(path);
  });

/** What a pod with a hostPath there can put in the place of a directory. */
const NO_DIRECTORY = ['ENOENT', 'ENOTDIR', 'ELOOP'];

/** Everything that carries a log's name: for a container that is removed. Where there is no directory there is no log. */
export async function removeContainerLogs(logPath: string, signal: AbortSignal): Promise<void> {
  try {
    await LogDir.using(logPath, (dir) => dir.removeAll(logPath, signal));
  } catch (err) {
    if (!NO_DIRECTORY.includes(errnoOf(err) ?? '')) throw err;
  }
}
