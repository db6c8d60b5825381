// umount(8) processes that an earlier run of the agent started. The kernel removes a mount from the table first and writes
// out its file system afterwards, in the context of this process: the file system is gone when the process has ended.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';

const POLL_MS = 100;

type Unmount = { readonly pid: string; readonly started: string; readonly target: string };

export class EarlierUnmounts {
  readonly #clock: Clock;
  readonly #procDir: string;
  /** Read once: processes of an earlier run are older than this one. */
  #found: Promise<readonly Unmount[]> | undefined;

  constructor(clock: Clock, procDir = '/proc') {
    this.#clock = clock;
    this.#procDir = procDir;
  }

  /** Resolves when no earlier umount(8) of `target` is under way. */
  async ended(target: string, signal: AbortSignal): Promise<void> {
    this.#found ??= findUnmounts(this.#procDir);
    for (const unmount of (await this.#found).filter((one) => one.target === target)) {
      while ((await startOf(this.#procDir, unmount.pid)) === unmount.started) {
        await this.#clock.sleep(POLL_MS, signal);
        signal.throwIfAborted();
      }
    }
  }
}

async function findUnmounts(procDir: string): Promise<Unmount[]> {
  const found: Unmount[] = [];
  for (const pid of (await readdir(procDir)).filter((name) => /^\d+$/.test(name))) {
    if ((await textOf(join(procDir, pid, 'comm'))).trim() !== 'umount') continue;
    const target = (await textOf(join(procDir, pid, 'cmdline'))).split('\0').at(-2);
    const started = await startOf(procDir, pid);
    if (target !== undefined && started !== undefined) found.push({ pid, started, target });
  }
  return found;
}

/** When a process began, which tells it from a later one with its id; undefined once it has ended. */
async function startOf(procDir: string, pid: string): Promise<string | undefined> {
  const stat = await textOf(join(procDir, pid, 'stat'));
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
}

/** Empty for a process that ended meanwhile. */
const textOf = (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '');
