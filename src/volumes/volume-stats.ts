// How much a volume holds. The walk is asynchronous, bounded in entries, and never enters another mount, so neither a
// huge nor a dead directory can take the process with it.
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { MountTable } from '../host/mounts/mount-table.ts';
import { errnoOf } from '../lib/errors.ts';
import { OpenDir } from '../host/files/open-dir.ts';

export type VolumeUsage = {
  readonly usedBytes: number;
  readonly inodesUsed: number;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
  /** The walk ended at its budget: what is used is at least what is said. */
  readonly partial: boolean;
  /** Who counted, as metrics call it: `du`, `fsquota`, `statfs`, `block` or a driver. */
  readonly source: string;
  /** What its driver says about its health, where it is asked to. */
  readonly health?: { readonly abnormal: boolean; readonly message: string };
};

const DEFAULT_BUDGET = 200_000;
const MAX_DEPTH = 128;
const BLOCK = 512;

export async function usageOf(
  path: string,
  mounts: MountTable,
  signal: AbortSignal,
  budget = DEFAULT_BUDGET,
): Promise<VolumeUsage> {
  const walk = new UsageWalk(mounts, signal, budget);
  await OpenDir.using(path, (dir) => walk.add(dir, path, 0));
  return { ...(await knownUsage(path, walk)), partial: walk.partial, source: 'du' };
}

/** For a directory of which somebody else knows what it holds. */
export async function knownUsage(
  path: string,
  { bytes, inodes }: { readonly bytes: number; readonly inodes: number },
): Promise<VolumeUsage> {
  const fs = await statfs(path);
  return {
    usedBytes: bytes,
    inodesUsed: inodes,
    capacityBytes: fs.blocks * fs.bsize,
    availableBytes: fs.bavail * fs.bsize,
    inodes: fs.files,
    inodesFree: fs.ffree,
    partial: false,
    source: 'fsquota',
  };
}

class UsageWalk {
  bytes = 0;
  inodes = 0;
  partial = false;
  readonly #mounts: MountTable;
  readonly #signal: AbortSignal;
  readonly #hardLinks = new Set<number>();
  #budget: number;

  constructor(mounts: MountTable, signal: AbortSignal, budget: number) {
    this.#mounts = mounts;
    this.#signal = signal;
    this.#budget = budget;
  }

  async add(dir: OpenDir, path: string, depth: number): Promise<void> {
    const own = await dir.stat();
    this.bytes += own.blocks * BLOCK;
    this.inodes++;
    for await (const name of dir.each()) {
      this.#signal.throwIfAborted();
      if (this.#budget-- <= 0 || depth > MAX_DEPTH) {
        this.partial = true;
        return;
      }
      const child = join(path, name);
      if (this.#mounts.at(child) !== undefined) continue;
      const stat = await dir.lstat(name);
      if (stat === undefined || stat.dev !== own.dev) continue;
      if (stat.isDirectory()) await this.#enter(dir, name, child, depth);
      else if (stat.nlink === 1 || !this.#hardLinks.has(stat.ino)) {
        if (stat.nlink > 1) this.#hardLinks.add(stat.ino);
        this.bytes += stat.blocks * BLOCK;
        this.inodes++;
      }
    }
  }

  async #enter(parent: OpenDir, name: string, path: string, depth: number): Promise<void> {
    let dir: OpenDir;
    try {
      dir = await parent.openDir(name);
    } catch (err) {
      // Removed or replaced while we looked.
      if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(err) ?? '')) return;
      throw err;
    }
    try {
      await this.add(dir, path, depth + 1);
    } finally {
      await dir.close();
    }
  }
}
