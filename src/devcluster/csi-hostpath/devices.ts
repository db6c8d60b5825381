// Loop devices, file systems and mounts, by the system's own tools as child processes with a deadline. Keeps no state:
// what is attached and mounted is read from /sys and /proc each time, so a restarted driver knows as much as before.
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { runChild } from '../../host/mounts/child.ts';
import { readMountTable, type MountEntry } from '../../host/mounts/mount-table.ts';
import { withDeadline } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { GrpcCode, GrpcError } from '../../lib/grpc/status.ts';
import type { Backing } from './volume-store.ts';

const TOOL_TIMEOUT_MS = 60_000;
const SUPPORTED = ['ext4', 'ext3', 'xfs'];
/** Options of one mount; all others belong to the file system and are given when it is staged. */
const PER_MOUNT = new Set(['noexec', 'nosuid', 'nodev', 'noatime', 'nodiratime', 'relatime']);

const CAP_SYS_RESOURCE = 24n;

/** The kernel grows a mounted ext4 only for those who have CAP_SYS_RESOURCE; many containers are started without it. */
async function mayGrowMounted(): Promise<boolean> {
  const effective = /^CapEff:\t([0-9a-f]+)$/m.exec(await readFile('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return ((BigInt(`0x${effective}`) >> CAP_SYS_RESOURCE) & 1n) === 1n;
}

/** Images where this machine can do all that they need, directories elsewhere. */
export async function usualBacking(): Promise<Backing> {
  const loops = await stat('/dev/loop-control').then(
    (s) => s.isCharacterDevice(),
    () => false,
  );
  return loops && (await mayGrowMounted()) ? 'image' : 'directory';
}

export class VolumeDevices {
  readonly #clock: Clock;
  readonly #stopping: AbortSignal;

  /** Work goes on when its caller gives up, as with a real driver; only `stopping` cuts it off. */
  constructor(clock: Clock, stopping: AbortSignal) {
    this.#clock = clock;
    this.#stopping = stopping;
  }

  /** The mount one sees at `path`; links in the directory part are followed. */
  async mountAt(path: string): Promise<MountEntry | undefined> {
    const parent = await realpath(dirname(path)).catch(() => undefined);
    return parent === undefined ? undefined : (await readMountTable()).at(join(parent, basename(path)));
  }

  /** Loop devices whose backing file is `image`. */
  async loopsOf(image: string): Promise<readonly string[]> {
    const wanted = await realpath(image).catch(() => image);
    const found: string[] = [];
    for (const name of await readdir('/sys/block')) {
      if (!name.startsWith('loop')) continue;
      const backing = await readFile(join('/sys/block', name, 'loop', 'backing_file'), 'utf8').catch(() => '');
      if (backing.trimEnd() === wanted) found.push(`/dev/${name}`);
    }
    return found;
  }

  async attachLoop(image: string): Promise<string> {
    const [known] = await this.loopsOf(image);
    return known ?? (await this.#tool('losetup', '--find', '--show', image)).trim();
  }

  async detachLoops(image: string): Promise<void> {
    for (const device of await this.loopsOf(image)) await this.#tool('losetup', '--detach', device);
  }

  /** Makes the file system unless there is one, and mounts it through a loop device that goes with the mount. */
  async mountImage(image: string, target: string, fsType: string, flags: readonly string[]): Promise<void> {
    const type = fsType === '' ? 'ext4' : fsType;
    if (!SUPPORTED.includes(type)) throw new GrpcError(GrpcCode.InvalidArgument, `fs type ${type} is not supported`);
    if ((await this.#typeOf(image)) === '') await this.#format(image, type);
    await this.#tool('mount', '-t', type, '-o', ['loop', ...flags].join(','), image, target);
  }

  async bind(source: string, target: string, readonly: boolean, flags: readonly string[]): Promise<void> {
    await this.#tool('mount', '--bind', source, target);
    const options = [...(readonly ? ['ro'] : []), ...flags.filter((f) => PER_MOUNT.has(f))];
    if (options.length === 0) return;
    try {
      await this.#tool('mount', '-o', ['remount', 'bind', ...options].join(','), target);
    } catch (err) {
      await this.#tool('umount', target);
      throw err;
    }
  }

  /** Whether a directory is mounted anywhere. */
  async isBound(directory: string): Promise<boolean> {
    const real = await realpath(directory).catch(() => directory);
    const table = await readMountTable();
    const holding = table.holding(real);
    if (holding === undefined) return false;
    const root = join(holding.root, relative(holding.target, real));
    return table.entries.some((e) => e.device === holding.device && e.root === root);
  }

  /** Bytes and files below a directory. */
  async usageOf(directory: string): Promise<{ bytes: number; files: number }> {
    const figure = async (...options: string[]): Promise<number> =>
      Number((await this.#tool('du', '-s', '-x', ...options, directory)).split('\t')[0]);
    return { bytes: await figure('--block-size=1'), files: await figure('--inodes') };
  }

  async unmount(target: string): Promise<void> {
    // Stacked mounts would be somebody's mistake, but they must all go before the directory can.
    while ((await this.mountAt(target)) !== undefined) await this.#tool('umount', target);
  }

  /** Tells the loop devices of a grown image its new size. */
  async refreshLoops(image: string): Promise<void> {
    for (const device of await this.loopsOf(image)) await this.#tool('losetup', '--set-capacity', device);
  }

  async growFileSystem(mount: MountEntry): Promise<void> {
    if (mount.fsType === 'xfs') await this.#tool('xfs_growfs', '-d', mount.target);
    else if (!(await mayGrowMounted()))
      throw new GrpcError(GrpcCode.FailedPrecondition, 'growing a mounted file system needs CAP_SYS_RESOURCE');
    else await this.#tool('resize2fs', mount.source);
  }

  async #typeOf(image: string): Promise<string> {
    const { code, output } = await this.#run('blkid', ['-p', '-s', 'TYPE', '-o', 'value', image]);
    if (code !== 0 && code !== 2) throw new GrpcError(GrpcCode.Internal, `blkid ${image}: ${output}`);
    return code === 2 ? '' : output;
  }

  async #format(image: string, type: string): Promise<void> {
    if (type === 'xfs') await this.#tool('mkfs.xfs', '-q', '-f', image);
    else await this.#tool(`mkfs.${type}`, '-q', '-F', '-m0', image);
  }

  async #tool(command: string, ...args: string[]): Promise<string> {
    const { code, output } = await this.#run(command, args);
    if (code !== 0) throw new GrpcError(GrpcCode.Internal, `${command} ${args.join(' ')}: exit ${code}: ${output}`);
    return output;
  }

  #run(command: string, args: readonly string[]): ReturnType<typeof runChild> {
    return withDeadline(this.#clock, this.#stopping, TOOL_TIMEOUT_MS, (signal) => runChild(command, args, signal));
  }
}
