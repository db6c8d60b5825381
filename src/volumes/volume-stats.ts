// How much a volume holds, and how much room is left beside it.
import { statfs } from 'node:fs/promises';
import type { DirectorySize } from './tally.ts';

export type VolumeUsage = {
  readonly usedBytes: number;
  readonly inodesUsed: number;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
  /** Who counted, as metrics call it: `du`, `fsquota`, `statfs`, `block` or a driver. */
  readonly source: string;
  /** What its driver says about its health, where it is asked to. */
  readonly health?: { readonly abnormal: boolean; readonly message: string };
};

/** Of a directory, by what it holds. */
export async function usageOf(
  path: string,
  { bytes, inodes }: DirectorySize,
  source: 'du' | 'fsquota',
): Promise<VolumeUsage> {
  const fs = await statfs(path);
  return {
    usedBytes: bytes,
    inodesUsed: inodes,
    capacityBytes: fs.blocks * fs.bsize,
    availableBytes: fs.bavail * fs.bsize,
    inodes: fs.files,
    inodesFree: fs.ffree,
    source,
  };
}
