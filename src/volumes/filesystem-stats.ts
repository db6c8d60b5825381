// How full a volume with a file system or a device of its own is: the file system knows, nothing needs to be walked. One
// that may not answer is asked by a child process.
import { statfs } from 'node:fs/promises';
import { deviceBytes, deviceNumber } from '../host/block/device-facts.ts';
import type { HostCommands } from '../host/mounts/commands.ts';
import type { Mounter } from '../host/mounts/mounter.ts';
import { KubeletError } from '../lib/errors.ts';
import type { MountedVolume } from './plugin.ts';
import type { VolumeUsage } from './volume-stats.ts';

export class FilesystemStats {
  readonly #mounter: Pick<Mounter, 'table'>;
  readonly #commands: HostCommands;

  constructor(deps: { mounter: Pick<Mounter, 'table'>; commands: HostCommands }) {
    this.#mounter = deps.mounter;
    this.#commands = deps.commands;
  }

  /** Undefined for a device that is gone. */
  async of({ hostPath, devicePath }: MountedVolume, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    if (devicePath !== undefined) return usageOfDevice(devicePath);
    if ((await this.#mounter.table(signal)).isLocal(hostPath)) return usageOfFilesystem(hostPath);
    const { code, output } = await this.#commands.run(
      'stat',
      ['-f', '-c', '%S %b %f %a %c %d', '--', hostPath],
      signal,
    );
    const numbers = output.split(' ').map(Number);
    if (code !== 0 || numbers.length !== 6 || numbers.some(Number.isNaN)) throw new KubeletError('unavailable', output);
    return usage(numbers);
  }
}

/** Of one that is known to answer. */
export async function usageOfFilesystem(path: string): Promise<VolumeUsage> {
  const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(path);
  return usage([bsize, blocks, bfree, bavail, files, ffree]);
}

function usage([size = 0, blocks = 0, free = 0, available = 0, inodes = 0, inodesFree = 0]: number[]): VolumeUsage {
  return {
    capacityBytes: blocks * size,
    usedBytes: (blocks - free) * size,
    availableBytes: available * size,
    inodes,
    inodesFree,
    inodesUsed: inodes - inodesFree,
    source: 'statfs',
  };
}

async function usageOfDevice(path: string): Promise<VolumeUsage | undefined> {
  const number = await deviceNumber(path);
  const bytes = number === undefined ? undefined : await deviceBytes(number);
  if (bytes === undefined) return undefined;
  const nothing = { usedBytes: 0, availableBytes: 0, inodes: 0, inodesFree: 0, inodesUsed: 0 };
  return { capacityBytes: bytes, ...nothing, source: 'block' };
}
