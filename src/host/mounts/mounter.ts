// What volumes may do to the mount table. In-memory filesystems and bind mounts of open descriptors are mounted in
// process (tens of microseconds), and one of several mounts of a local filesystem is unmounted there: only the last one writes
// anything out. Whatever may wait for a disk or a peer is a child process. A deadline ends one that waits for a peer. The
// unmount of a disk has no deadline: the kernel takes the mount out of the table at once and writes to the disk until the
// child ends.
import { realpath } from 'node:fs/promises';
import { abortable, withDeadline } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { isFault, KubeletError } from '../../lib/errors.ts';
import { runChild } from './child.ts';
import type { HostCommands } from './commands.ts';
import { EarlierUnmounts } from './earlier-unmounts.ts';
import { describeHolders, holdersOf } from './holders.ts';
import { isOfKernel, readMountTable, seenFrom, type MountEntry, type MountTable } from './mount-table.ts';
import { mountSync, unmountSync } from '../libc.ts';

const MS_BIND = 4096;
const UMOUNT_NOFOLLOW = 8;

export interface Mounter {
  table(signal: AbortSignal): Promise<MountTable>;
  /** Mounts a tmpfs. Swap is kept out of it where the kernel can. */
  tmpfs(target: string, options: TmpfsOptions, signal: AbortSignal): Promise<void>;
  hugetlbfs(target: string, pageSize: string, signal: AbortSignal): Promise<void>;
  /** Binds what an open descriptor of this process refers to. The path behind it is not looked at again. */
  bindDescriptor(fd: number, target: string, signal: AbortSignal): Promise<void>;
  /** Unmounts whatever is at `target`. No mount there is success. The error of a busy one names who holds it. */
  unmount(target: string, options: UnmountOptions, signal: AbortSignal): Promise<void>;
}

export type TmpfsOptions = { readonly sizeBytes?: number };
export type UnmountOptions = {
  /** The mount is known to be small and in memory: unmounting it takes no time worth a child process. */
  readonly inMemory?: boolean;
  /** A file system on a disk is or was mounted there: also wait for an unmount that an earlier run began. */
  readonly ofDisk?: boolean;
  /** Should the filesystem not answer, detach it and let the kernel clean up when it can. Never done to a disk. */
  readonly detachIfDead?: boolean;
  /** Should the server not answer, first try to make the kernel give up on it (NFS). */
  readonly forceIfDead?: boolean;
};

export type MounterOpts = {
  readonly childTimeoutMs?: number;
  /** The kubelet's root directory as configured. It may be or contain a link; the mount table is shown in its terms. */
  readonly rootDir?: string;
};

/** What the kernel and umount(8) do. */
export type MountKernel = {
  readonly table: () => Promise<MountTable>;
  readonly run: HostCommands['run'];
  /** Unmounts in process. */
  readonly unmount: (target: string) => void;
  readonly procDir?: string;
};

export type MounterDeps = {
  readonly clock: Clock;
  /** A stand-in for tests. */
  readonly kernel?: MountKernel;
};

const KERNEL: MountKernel = {
  table: () => readMountTable(),
  // Unmounting is possible however many children hang.
  run: (command, args, signal) => runChild(command, args, signal, undefined, { isWayOut: true }),
  unmount: (target) => unmountSync(target, UMOUNT_NOFOLLOW),
};

export class HostMounter implements Mounter {
  readonly #clock: Clock;
  readonly #kernel: MountKernel;
  readonly #childTimeoutMs: number;
  readonly #rootDir: string | undefined;
  readonly #earlier: EarlierUnmounts;
  /** Unmounts of disks under way, by target. Each goes on when its caller stops waiting; the next caller joins it. */
  readonly #unmounting = new Map<string, Promise<void>>();
  #realRoot: string | undefined;
  #noswap = true;

  constructor(deps: MounterDeps, opts: MounterOpts = {}) {
    this.#clock = deps.clock;
    this.#kernel = deps.kernel ?? KERNEL;
    this.#earlier = new EarlierUnmounts(deps.clock, this.#kernel.procDir);
    this.#childTimeoutMs = opts.childTimeoutMs ?? 60_000;
    this.#rootDir = opts.rootDir;
  }

  async table(signal: AbortSignal): Promise<MountTable> {
    signal.throwIfAborted();
    const table = await this.#kernel.table();
    if (this.#rootDir === undefined) return table;
    this.#realRoot ??= await realpath(this.#rootDir).catch(() => undefined);
    return this.#realRoot === undefined ? table : seenFrom(table, this.#realRoot, this.#rootDir);
  }

  tmpfs(target: string, options: TmpfsOptions, signal: AbortSignal): Promise<void> {
    return attempt(target, signal, () => {
      const size = options.sizeBytes === undefined ? [] : [`size=${options.sizeBytes}`];
      if (this.#noswap) {
        try {
          return mountSync('tmpfs', target, 'tmpfs', 0, [...size, 'noswap'].join(','));
        } catch (err) {
          if (!isFault(err, 'invalid', 'denied')) throw err;
        }
      }
      mountSync('tmpfs', target, 'tmpfs', 0, size.join(','));
      this.#noswap = false;
    });
  }

  hugetlbfs(target: string, pageSize: string, signal: AbortSignal): Promise<void> {
    return attempt(target, signal, () => mountSync('nodev', target, 'hugetlbfs', 0, `pagesize=${pageSize}`));
  }

  bindDescriptor(fd: number, target: string, signal: AbortSignal): Promise<void> {
    return attempt(target, signal, () => mountSync(`/proc/self/fd/${fd}`, target, '', MS_BIND, ''));
  }

  async unmount(target: string, options: UnmountOptions, signal: AbortSignal): Promise<void> {
    // A mount may be stacked on another; a handful of rounds is more than any sane node has.
    for (let round = 0; round < 8; round++) {
      try {
        const underWay = this.#unmounting.get(target);
        if (underWay !== undefined) {
          await abortable(signal, underWay);
          continue;
        }
        const table = options.inMemory === true ? undefined : await this.table(signal);
        const entry = table?.at(target);
        if (table !== undefined && entry === undefined)
          return options.ofDisk === true ? await this.#earlier.ended(target, signal) : undefined;
        if (entry === undefined || table?.isMountedElsewhere(entry) === true)
          await attempt(target, signal, () => this.#kernel.unmount(target));
        else if (isOfKernel(entry)) await this.#unmountDisk(target, signal);
        else await this.#unmountByChild(entry, options, signal);
      } catch (err) {
        // An unmount of a disk may go on.
        signal.throwIfAborted();
        // Nothing is mounted there, or nothing is there at all.
        if (isFault(err, 'invalid', 'notFound')) return;
        await this.#explain(target, err, signal);
      }
    }
    throw new KubeletError('internal', `umount ${target}: still mounted after 8 unmounts`);
  }

  /** Adds to a busy mount's error who holds it. Returns if the mount went nevertheless. */
  async #explain(target: string, err: unknown, signal: AbortSignal): Promise<void> {
    const entry = (await this.table(signal)).at(target);
    if (entry === undefined) return;
    if (!isFault(err, 'conflict')) throw err;
    const holders = await holdersOf(entry, signal);
    const who = holders.length === 0 ? 'no holder found' : `held by ${describeHolders(holders)}`;
    throw new KubeletError('conflict', `${err.message}: ${who}`, { cause: err });
  }

  /** Ends when the child has ended, however long the disk takes: until then the kernel may write to it. */
  #unmountDisk(target: string, signal: AbortSignal): Promise<void> {
    const underWay = this.#umount([], target, new AbortController().signal).finally(() =>
      this.#unmounting.delete(target),
    );
    underWay.catch(() => undefined); // Each caller that still waits gets the error.
    this.#unmounting.set(target, underWay);
    return abortable(signal, underWay);
  }

  async #unmountByChild({ target }: MountEntry, options: UnmountOptions, signal: AbortSignal): Promise<void> {
    try {
      await this.#umountInTime([], target, signal);
    } catch (err) {
      if (signal.aborted) throw err;
      // Busy with somebody who waits for the server: it is as dead as one that does not let itself be unmounted.
      const isDead =
        isFault(err, 'deadline') || (options.forceIfDead === true && !(await this.#answers(target, signal)));
      if (!isDead) throw err;
      if (options.forceIfDead === true && (await this.#isForcedOff(target, signal))) return;
      if (options.detachIfDead !== true) throw err;
      await this.#umountInTime(['--lazy'], target, signal);
    }
  }

  async #answers(target: string, signal: AbortSignal): Promise<boolean> {
    try {
      await withDeadline(this.#clock, signal, this.#childTimeoutMs, (own) =>
        this.#kernel.run('stat', ['-f', target], own),
      );
      return true;
    } catch (err) {
      if (signal.aborted || !isFault(err, 'deadline')) throw err;
      return false;
    }
  }

  async #isForcedOff(target: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#umountInTime(['--force'], target, signal);
      return true;
    } catch (err) {
      if (signal.aborted || !isFault(err, 'deadline', 'conflict')) throw err;
      return false;
    }
  }

  #umountInTime(flags: readonly string[], target: string, signal: AbortSignal): Promise<void> {
    return withDeadline(this.#clock, signal, this.#childTimeoutMs, (own) => this.#umount(flags, target, own));
  }

  async #umount(flags: readonly string[], target: string, signal: AbortSignal): Promise<void> {
    const { code, output } = await this.#kernel.run('umount', ['--no-canonicalize', ...flags, target], signal);
    if (code !== 0) throw new KubeletError('conflict', `unmount failed: exit status ${code}: ${output}`);
  }
}

async function attempt(target: string, signal: AbortSignal, op: () => void): Promise<void> {
  signal.throwIfAborted();
  await Promise.resolve();
  try {
    op();
  } catch (err) {
    throw isFault(err) ? new KubeletError(err.kind, `${err.message} at ${target}`, { cause: err }) : err;
  }
}
