// The directory or in-memory filesystem under an emptyDir and under every volume whose files the kubelet writes. A
// marker file beside the volume says that it was set up completely, so that a restart neither repeats nor trusts half
// of it.
import { access, chmod, lstat, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { declaresLimit, podLimits } from '../../core/pod-resources.ts';
import type { Pod } from '../../core/pod.ts';
import { bytesOf, toNumber } from '../../core/quantity.ts';
import type { Mounter } from '../../host/mounts/mounter.ts';
import { errnoOf } from '../../lib/errors.ts';
import type { VolumeLayout } from '../layout.ts';
import { survivesUmask } from '../../host/files/modes.ts';
import { OpenDir } from '../../host/files/open-dir.ts';
import { removeTree } from '../../host/files/remove-tree.ts';
import { ensureDir, removeEmptyDir } from '../pod-dirs.ts';

const MARKER_MODE = 0o644;

export type Medium =
  | { readonly on: 'disk' }
  | { readonly on: 'memory'; readonly sizeBytes: number | undefined }
  | { readonly on: 'hugepages'; readonly pageSize: string };

export type BackingRequest = {
  readonly uid: string;
  readonly plugin: string;
  readonly specName: string;
  readonly markerName: string;
  readonly medium: Medium;
};

/** tmpfs size: the smallest of what the node can give, the pod as a whole may use and the volume asks for. */
export function memorySize(pod: Pod, allocatableBytes: number, sizeLimit: string | undefined): number | undefined {
  const podLimit = declaresLimit(pod, 'memory') ? podLimits(pod).get('memory') : undefined;
  const bounds = [allocatableBytes, podLimit === undefined ? 0 : toNumber(podLimit), bytesOf(sizeLimit)];
  const positive = bounds.filter((bound) => bound > 0);
  return positive.length === 0 ? undefined : Math.min(...positive);
}

/** `ready`: set up completely before. `begun`: perhaps half of it. `mounted`: new, in memory, seen by nobody yet. */
export type Found = 'ready' | 'begun' | 'mounted';

export class EmptyDirBacking {
  readonly #layout: VolumeLayout;
  readonly #mounter: Mounter;

  constructor(layout: VolumeLayout, mounter: Mounter) {
    this.#layout = layout;
    this.#mounter = mounter;
  }

  pathOf(request: Pick<BackingRequest, 'uid' | 'plugin' | 'specName'>): string {
    return this.#layout.volumeDir(request.uid, request.plugin, request.specName);
  }

  /** Makes the directory, mounted if need be, and says what it found. */
  async setUp(request: BackingRequest, signal: AbortSignal): Promise<Found> {
    const path = this.pathOf(request);
    const isFirst = await ensureDir(this.#layout.pluginVolumesDir(request.uid, request.plugin), 0o755);
    const marked = !isFirst && (await isThere(this.#marker(request)));
    if (request.medium.on === 'disk') {
      if (marked && (await isThere(path))) return 'ready';
      if (!(await ensureDir(path, 0o777))) await chmod(path, 0o777);
      return 'begun';
    }
    // Nobody sees the mode of what is mounted over.
    const made = await ensureDir(path, 0o755);
    if (!made && (await isMountPoint(path))) return marked ? 'ready' : 'begun';
    if (request.medium.on === 'hugepages') await this.#mounter.hugetlbfs(path, request.medium.pageSize, signal);
    else {
      const { sizeBytes } = request.medium;
      await this.#mounter.tmpfs(path, sizeBytes === undefined ? {} : { sizeBytes }, signal);
    }
    return 'mounted';
  }

  /** To be called when the volume is complete: permissions set, content written. */
  async markReady(request: Pick<BackingRequest, 'uid' | 'markerName'>): Promise<void> {
    const marker = this.#marker(request);
    await ensureDir(this.#layout.emptyDirMetaDir(request.uid), 0o750);
    await ensureDir(dirname(marker), 0o750);
    await writeFile(marker, '', { mode: MARKER_MODE });
    if (!survivesUmask(MARKER_MODE)) await chmod(marker, MARKER_MODE);
  }

  /** `small`: the kubelet wrote the content itself, so unmounting frees next to nothing. */
  async tearDown(
    request: Omit<BackingRequest, 'medium'> & { readonly small: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const path = this.pathOf(request);
    // The mark goes first: from here on the volume counts as incomplete.
    await removeMark(this.#marker(request));
    if (request.small && (await this.#removeOwn(path, signal))) return;
    // A container may have left mounts of its own in the volume; they go before it, and deletion never enters one.
    for (const mount of (await this.#mounter.table(signal)).beneath(path)) {
      const inMemory = request.small && mount.target === path && mount.fsType === 'tmpfs';
      await this.#mounter.unmount(mount.target, { inMemory }, signal);
    }
    try {
      await OpenDir.using(dirname(path), (parent) => removeTree(parent, basename(path), signal));
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT') throw err;
    }
  }

  /**
   * What the kubelet has mounted and written itself goes without a look at the mount table, which is long on a full node.
   * False when something else is there as well.
   */
  async #removeOwn(path: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#mounter.unmount(path, { inMemory: true }, signal);
      await removeEmptyDir(path);
      return true;
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  #marker(request: Pick<BackingRequest, 'uid' | 'markerName'>): string {
    return join(this.#layout.readyDir(request.uid, request.markerName), 'ready');
  }
}

/** The file and the directory it is in, whatever else is there. */
async function removeMark(marker: string): Promise<void> {
  try {
    await unlink(marker);
    await rmdir(dirname(marker));
  } catch {
    await rm(dirname(marker), { recursive: true, force: true });
  }
}

/** By device number: the directory is the kubelet's own, so asking it cannot hang. */
async function isMountPoint(path: string): Promise<boolean> {
  const [own, parent] = await Promise.all([lstat(path), lstat(dirname(path))]);
  return own.dev !== parent.dev;
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return false;
    throw err;
  }
}
