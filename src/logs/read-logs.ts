// Reads a container's log as a stream. A slow reader slows the reading, nothing piles up. Following goes on over
// rotations: the old file is read to its end, then files rotated meanwhile, then the new one.
import { watch } from 'node:fs';
import { lstat, realpath } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';
import { inodeOf, LogFile } from './log-file.ts';
import { Rendering, type RenderOptions } from './rendering.ts';
import { COMPRESSED, rotatedNameOf, rotatedNames, unpackedLines } from './rotated-files.ts';

export type LogOptions = RenderOptions & {
  /** Counted in lines of the file, parts of split lines included. */
  readonly tailLines?: number;
  /** With `tailLines`: how far back to look for them. */
  readonly tailBytes?: number;
  readonly follow?: boolean;
  readonly clock: Clock;
};
/** Whether the container the log belongs to still runs, so that more may come. */
export type IsRunning = (signal: AbortSignal) => boolean | Promise<boolean>;

const CHECK_MS = 1000;
/** After a new file appears the runtime may still finish a write to the old one. */
const LAST_WRITE_MS = 50;

export async function* readLogs(
  path: string,
  options: LogOptions,
  isRunning: IsRunning,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  // The name in /var/log/containers is a link; the watch must be on the directory of the real file.
  const real = await resolved(path);
  const file = await opened(real);
  const session = new Session(real, file, options, isRunning, signal);
  try {
    yield* session.read();
  } finally {
    await session.close();
  }
}

async function resolved(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (err) {
    throw translated(err, `failed to try resolving symlinks in path "${path}"`);
  }
}

async function opened(path: string): Promise<LogFile> {
  try {
    return await LogFile.open(path);
  } catch (err) {
    throw translated(err, `failed to open log file "${path}"`);
  }
}

const translated = (err: unknown, what: string): KubeletError =>
  new KubeletError(errnoOf(err) === 'ENOENT' ? 'notFound' : 'unavailable', `${what}: ${messageOf(err)}`, {
    cause: err,
  });

class Session {
  readonly #path: string;
  #file: LogFile;
  readonly #options: LogOptions;
  readonly #clock: Clock;
  readonly #isRunning: IsRunning;
  readonly #signal: AbortSignal;
  readonly #rendering: Rendering;
  #watcher: DirectoryWatch | undefined;
  #askedAt = -Infinity;
  #before = '';
  /** Of a tail that is not followed: what is written while it is read is no part of it. */
  #linesLeft = Infinity;

  constructor(path: string, file: LogFile, options: LogOptions, isRunning: IsRunning, signal: AbortSignal) {
    this.#path = path;
    this.#file = file;
    this.#options = options;
    this.#clock = options.clock;
    this.#isRunning = isRunning;
    this.#signal = signal;
    this.#rendering = new Rendering(options);
  }

  async close(): Promise<void> {
    this.#watcher?.close();
    await this.#file.close();
  }

  async *read(): AsyncGenerator<Buffer, void, undefined> {
    if (this.#options.limitBytes !== undefined && this.#options.limitBytes <= 0) return;
    const tail = this.#options.tailLines;
    if (tail !== undefined && tail >= 0) {
      this.#file.seek(await this.#file.tailStart(tail, this.#options.tailBytes));
      if (this.#options.follow !== true) this.#linesLeft = tail;
    }
    if (this.#options.follow === true) yield* this.#follow();
    else yield* this.#drain(await this.#file.size(), true);
  }

  /** What the file has now. `last`: also a line that has no end yet. */
  async *#drain(end: number, last: boolean): AsyncGenerator<Buffer, void, undefined> {
    while (!this.#rendering.full && this.#linesLeft > 0) {
      this.#signal.throwIfAborted();
      const lines = await this.#file.lines(end);
      if (lines.length === 0) {
        const rest = last ? this.#file.remainder() : undefined;
        if (rest !== undefined) yield* this.#rendered([rest]);
        return;
      }
      yield* this.#rendered(lines.slice(0, this.#linesLeft));
      this.#linesLeft -= lines.length;
    }
  }

  *#rendered(lines: readonly Buffer[]): Generator<Buffer, void, undefined> {
    const bytes = this.#rendering.render(lines);
    if (bytes.length > 0) yield bytes;
  }

  async *#follow(): AsyncGenerator<Buffer, void, undefined> {
    // Before the first read, so that nothing happens unseen between a read and the watch.
    this.#watcher = new DirectoryWatch(this.#path, this.#clock);
    this.#before = await this.#newestBefore();
    let stopped = false;
    for (;;) {
      this.#watcher.arm();
      yield* this.#drain(Infinity, stopped);
      if (this.#rendering.full || this.#signal.aborted) return;
      if (await this.#isReplaced()) {
        yield* this.#switchFile();
      } else if (stopped) {
        return;
      } else if (await this.#hasStopped()) {
        // It may have written between our last look and its end: look once more.
        stopped = true;
      } else {
        await this.#watcher.wait(CHECK_MS, this.#signal);
      }
    }
  }

  /** Asked at most once a second: a busy log wakes us far more often than a container stops. */
  async #hasStopped(): Promise<boolean> {
    const now = this.#clock.monotonic();
    if (now - this.#askedAt < CHECK_MS) return false;
    this.#askedAt = now;
    return !(await this.#isRunning(this.#signal));
  }

  async #isReplaced(): Promise<boolean> {
    try {
      return inodeOf(await lstat(this.#path)) !== this.#file.inode;
    } catch (err) {
      // Renamed and not yet created again, or removed for good: then there is nothing to switch to.
      if (errnoOf(err) === 'ENOENT') return false;
      throw translated(err, `failed to stat log file "${this.#path}"`);
    }
  }

  /** Our file, once it is rotated, is the first one with a later name than this. */
  async #newestBefore(): Promise<string> {
    const names = await rotatedNames(this.#path);
    const own = await rotatedNameOf(names, this.#file.inode);
    return names[(own === undefined ? names.length : names.indexOf(own)) - 1] ?? '';
  }

  /** Goes on to the file that came after ours. It may itself have been rotated or even compressed by now. */
  async *#switchFile(): AsyncGenerator<Buffer, void, undefined> {
    const [own, next] = await this.#laterThan(this.#before);
    if (next === undefined) await this.#clock.sleep(LAST_WRITE_MS, this.#signal);
    yield* this.#drain(Infinity, true);
    if (this.#rendering.full) return;
    const path = next ?? this.#path;
    try {
      const file = await LogFile.open(path);
      // Rotated between the look and the opening: what we opened is not what comes next.
      if (next === undefined && (await this.#laterThan(own ?? this.#before)).length > 0) return await file.close();
      await this.#file.close();
      this.#file = file;
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT') throw translated(err, `failed to open log file "${path}"`);
      // Without a next one: rotated this very moment, and the next look finds it.
      if (next === undefined) return;
      yield* this.#unpacked(next);
    }
    this.#before = own ?? this.#before;
  }

  async #laterThan(name: string): Promise<readonly string[]> {
    return (await rotatedNames(this.#path)).filter((other) => other > name);
  }

  async *#unpacked(name: string): AsyncGenerator<Buffer, void, undefined> {
    try {
      for await (const lines of unpackedLines(name + COMPRESSED, this.#signal)) {
        yield* this.#rendered(lines);
        if (this.#rendering.full) return;
      }
    } catch (err) {
      // Old enough to be deleted before this reader came to it.
      if (errnoOf(err) !== 'ENOENT') throw err;
    }
  }
}

/** Wakes when something happens to one file or its name. */
class DirectoryWatch {
  readonly #clock: Clock;
  readonly #close: () => void;
  #changed = false;
  #wake: () => void = () => undefined;

  constructor(path: string, clock: Clock) {
    this.#clock = clock;
    const name = basename(path);
    try {
      const handle = watch(dirname(path), { persistent: false }, (_event, changed) => {
        if (changed !== null && changed !== name) return;
        this.#changed = true;
        this.#wake();
      });
      // Without a watch (no more of them, directory gone) the regular check does.
      handle.on('error', () => handle.close());
      this.#close = () => handle.close();
    } catch {
      // See above: readers then look once a second.
      this.#close = () => undefined;
    }
  }

  /** Forgets changes seen so far; what comes from now on ends the next wait. */
  arm(): void {
    this.#changed = false;
  }

  wait(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#changed || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        signal.removeEventListener('abort', done);
        this.#wake = () => undefined;
        resolve();
      };
      const timer = this.#clock.after(ms, done);
      this.#wake = done;
      signal.addEventListener('abort', done, { once: true });
    });
  }

  close(): void {
    this.#close();
  }
}
