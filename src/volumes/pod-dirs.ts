// The directory of a pod: made before anything of the pod is, removed when nothing of it is left. Removal never crosses
// a mount point: what is still mounted is named and stays.
import { access, chmod, mkdir, readdir, rmdir } from 'node:fs/promises';
import { dirname, basename, join } from 'node:path';
import { errnoOf, KubeletError } from '../lib/errors.ts';
import type { Mounter } from '../host/mounts/mounter.ts';
import { notesOf } from './attach-notes.ts';
import type { VolumeLayout } from './layout.ts';
import { survivesUmask } from '../host/files/modes.ts';
import { OpenDir } from '../host/files/open-dir.ts';
import { removeTree } from '../host/files/remove-tree.ts';

const PRIVATE = 0o750;

/** Makes a directory with exactly this mode; false when it is there already, which keeps its mode. */
export async function ensureDir(path: string, mode: number): Promise<boolean> {
  try {
    await mkdir(path, mode);
  } catch (err) {
    if (errnoOf(err) === 'EEXIST') return false;
    throw err;
  }
  if (!survivesUmask(mode)) await chmod(path, mode);
  return true;
}

/** Removes a directory that nothing is mounted on any more. One with content is an error: it is not ours. */
export async function removeEmptyDir(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (err) {
    if (errnoOf(err) !== 'ENOENT') throw err;
  }
}

/** Whether an empty directory was there, and is no more. */
const isRemoved = (path: string): Promise<boolean> =>
  rmdir(path).then(
    () => true,
    () => false,
  );

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

export class PodDirs {
  readonly #layout: VolumeLayout;
  readonly #mounter: Pick<Mounter, 'table'>;
  /** Pods whose directories were there once since this agent started. */
  readonly #seen = new Set<string>();

  constructor(layout: VolumeLayout, mounter: Pick<Mounter, 'table'>) {
    this.#layout = layout;
    this.#mounter = mounter;
  }

  async ensure(uid: string): Promise<void> {
    const isNew = !this.#seen.has(uid) && (await this.#makePodDir(uid));
    const rest = [this.#layout.volumesDir(uid), this.#layout.pluginsDir(uid)];
    // Asked for with every step of a pod, made once, the last of them last.
    if (isNew || !(await isThere(rest.at(-1) ?? ''))) {
      if (!isNew) await this.#makePodDir(uid);
      for (const dir of rest) await ensureDir(dir, PRIVATE);
    }
    this.#seen.add(uid);
  }

  /** For the steps within one pass over a pod, which begins with `ensure`. */
  async ensureOnce(uid: string): Promise<void> {
    if (!this.#seen.has(uid)) await this.ensure(uid);
  }

  async #makePodDir(uid: string): Promise<boolean> {
    const dir = this.#layout.podDir(uid);
    try {
      return await ensureDir(dir, PRIVATE);
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT') throw err;
      await mkdir(this.#layout.podsDir, { recursive: true, mode: PRIVATE });
      return ensureDir(dir, PRIVATE);
    }
  }

  /** UIDs of all pods that have a directory. */
  async list(): Promise<string[]> {
    try {
      const entries = await readdir(this.#layout.podsDir, { withFileTypes: true });
      return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
    } catch (err) {
      if (errnoOf(err) === 'ENOENT') return [];
      throw err;
    }
  }

  /**
   * Removes the directory of a pod that nobody knows any more. Volumes are not data of ours to delete: while one is
   * mounted or has a directory, this is a `conflict` that says which.
   */
  async removeOrphan(uid: string, signal: AbortSignal): Promise<void> {
    const path = this.#layout.podDir(uid);
    this.#seen.delete(uid);
    try {
      await this.#removeVolumeDirs(uid);
      await isRemoved(this.#layout.emptyDirMetaDir(uid)); // below otherwise, with more calls
      await OpenDir.using(dirname(path), (pods) => removeTree(pods, basename(path), signal));
    } catch (err) {
      // Nothing above goes through a mount point. The mount table is long on a full node: it is read to explain.
      const mounts = (await this.#mounter.table(signal)).beneath(path);
      const [first] = mounts;
      if (first === undefined) throw err;
      const what = `${mounts.length} mounts, e.g. ${first.target}`;
      throw new KubeletError('conflict', `pod directory ${path} still has ${what}`, { cause: err });
    }
  }

  async #removeVolumeDirs(uid: string): Promise<void> {
    const path = this.#layout.podDir(uid);
    const volumes = this.#layout.volumesDir(uid);
    for (const kind of await namesIn(volumes)) {
      // Nearly always nothing is left but this.
      if (await isRemoved(join(volumes, kind))) continue;
      for (const name of await namesIn(join(volumes, kind))) {
        try {
          await rmdir(join(volumes, kind, name));
        } catch (err) {
          if (errnoOf(err) === 'ENOENT') continue;
          const dir = `${kind}/${name}`;
          throw new KubeletError('conflict', `pod directory ${path} still has the volume ${dir}`, { cause: err });
        }
      }
    }
    // A link that is left stands for a bind and a loop device elsewhere, which somebody must still remove.
    const [device] = await namesOfVolumesIn(this.#layout.volumeDevicesDir(uid));
    if (device !== undefined)
      throw new KubeletError('conflict', `pod directory ${path} still has the block volume ${device}`);
    const [note] = await notesOf(this.#layout, uid);
    if (note !== undefined)
      throw new KubeletError('conflict', `pod directory ${path} still has the disk ${note.plugin}/${note.specName}`);
  }
}

async function namesOfVolumesIn(dir: string): Promise<string[]> {
  const found: string[] = [];
  for (const plugin of await namesIn(dir)) {
    for (const name of await namesIn(join(dir, plugin))) found.push(`${plugin}/${name}`);
  }
  return found;
}

async function namesIn(path: string): Promise<string[]> {
  try {
    return await readdir(path);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return [];
    throw err;
  }
}
