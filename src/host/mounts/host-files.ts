// Questions about paths that users name. On a machine where every filesystem is local they are answered in process;
// where one may be waiting for a dead server, by a child process that a deadline ends.
import { mkdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { withDeadline } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { errnoOf, isFault, KubeletError } from '../../lib/errors.ts';
import { OpenDir } from '../files/open-dir.ts';
import { runChild, type ChildResult } from './child.ts';
import { noAnswer } from './hung-children.ts';
import type { Mounter } from './mounter.ts';

export type FileKind = 'missing' | 'directory' | 'file' | 'socket' | 'charDevice' | 'blockDevice' | 'other';

export interface HostFiles {
  /** What `path` leads to, symlinks followed. */
  kindOf(path: string, signal: AbortSignal): Promise<FileKind>;
  /** The path with every link in it followed; `notFound` when it leads nowhere. */
  resolve(path: string, signal: AbortSignal): Promise<string>;
  /** Makes the directory and its parents, 0755. */
  makeDirectory(path: string, signal: AbortSignal): Promise<void>;
  /** Makes an empty file, 0644; its directory must exist. What is there by then, whatever it is, is left alone. */
  makeFile(path: string, signal: AbortSignal): Promise<void>;
}

const S_IFMT = 0o170000;
const KINDS: Readonly<Record<number, FileKind>> = {
  [0o040000]: 'directory',
  [0o100000]: 'file',
  [0o140000]: 'socket',
  [0o020000]: 'charDevice',
  [0o060000]: 'blockDevice',
};

const kindOfMode = (mode: number): FileKind => KINDS[mode & S_IFMT] ?? 'other';

/** A container may have the directory: the name is never opened, which a pipe in its place would make wait for ever. */
async function makeNewFile(path: string): Promise<void> {
  const directory = await OpenDir.follow(dirname(path));
  try {
    await directory.createFile(basename(path), Buffer.alloc(0), 0o644);
  } catch (err) {
    if (errnoOf(err) !== 'EEXIST') throw err;
  } finally {
    await directory.close();
  }
}

export class SafeHostFiles implements HostFiles {
  readonly #clock: Clock;
  readonly #mounter: Pick<Mounter, 'table'>;
  readonly #timeoutMs: number;

  constructor(deps: { clock: Clock; mounter: Pick<Mounter, 'table'> }, opts: { timeoutMs?: number } = {}) {
    this.#clock = deps.clock;
    this.#mounter = deps.mounter;
    this.#timeoutMs = opts.timeoutMs ?? 60_000;
  }

  async kindOf(path: string, signal: AbortSignal): Promise<FileKind> {
    if (await this.#allLocal(signal)) {
      try {
        return kindOfMode((await stat(path)).mode);
      } catch (err) {
        if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return 'missing';
        throw err;
      }
    }
    const { code, output } = await this.#child(path, 'stat', ['-L', '-c', '%f', '--', path], signal);
    if (code === 0) return kindOfMode(parseInt(output, 16));
    // The tool has one exit code for all failures; its locale is fixed to C.
    if (/No such file or directory|Not a directory/.test(output)) return 'missing';
    throw new KubeletError('unavailable', output);
  }

  async resolve(path: string, signal: AbortSignal): Promise<string> {
    if (await this.#allLocal(signal)) {
      try {
        return await realpath(path);
      } catch (err) {
        if (errnoOf(err) !== 'ENOENT') throw err;
        throw new KubeletError('notFound', `lstat ${path}: no such file or directory`, { cause: err });
      }
    }
    const { code, output } = await this.#child(path, 'realpath', ['-e', '--', path], signal);
    if (code === 0) return output;
    throw new KubeletError(/No such file or directory/.test(output) ? 'notFound' : 'unavailable', output);
  }

  async makeDirectory(path: string, signal: AbortSignal): Promise<void> {
    if (await this.#allLocal(signal)) await mkdir(path, { recursive: true, mode: 0o755 });
    else await this.#must(path, 'mkdir', ['-p', '-m', '0755', '--', path], signal);
  }

  async makeFile(path: string, signal: AbortSignal): Promise<void> {
    if (await this.#allLocal(signal)) await makeNewFile(path);
    else await this.#must(path, 'touch', ['--', path], signal);
  }

  async #allLocal(signal: AbortSignal): Promise<boolean> {
    return !(await this.#mounter.table(signal)).hasForeign;
  }

  async #must(path: string, command: string, args: readonly string[], signal: AbortSignal): Promise<void> {
    const { code, output } = await this.#child(path, command, args, signal);
    if (code !== 0) throw new KubeletError('unavailable', output);
  }

  async #child(path: string, command: string, args: readonly string[], signal: AbortSignal): Promise<ChildResult> {
    try {
      return await withDeadline(this.#clock, signal, this.#timeoutMs, (own) => runChild(command, args, own));
    } catch (err) {
      if (signal.aborted || !isFault(err, 'deadline')) throw err;
      throw noAnswer(path, this.#timeoutMs, err);
    }
  }
}
