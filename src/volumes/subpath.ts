// subPath: a part of a volume, bound to a place of the kubelet's own that the runtime mounts. The runtime never gets a
// path that a container could change. volume-subpaths/<volume>/<container>/<index of the mount>
import type { Stats } from 'node:fs';
import { access, chmod, readdir, realpath, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runChild } from '../host/mounts/child.ts';
import { LARGE_CHILD, noAnswer } from '../host/mounts/hung-children.ts';
import type { Mounter } from '../host/mounts/mounter.ts';
import { withDeadline } from '../lib/abort.ts';
import { partCommand } from '../lib/built.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, isFault, KubeletError } from '../lib/errors.ts';
import { checkPathLength, makeBeneath } from '../host/files/beneath.ts';
import { element, type VolumeLayout } from './layout.ts';
import type { PinnedFile } from '../host/files/open-dir.ts';
import { ensureDir } from './pod-dirs.ts';

export type SubPathRequest = {
  readonly uid: string;
  /** The volume's directory name. */
  readonly volume: string;
  /** The volume's name in the pod, for messages. */
  readonly mountName: string;
  readonly container: string;
  readonly mountIndex: number;
  /** What the volume's plugin says is the volume. */
  readonly volumePath: string;
  readonly subPath: string;
};

export type SubPathOpts = {
  /** Runs `subpath-child.ts`, to look into volumes that may hang. */
  readonly childCommand?: readonly string[];
  readonly childTimeoutMs?: number;
};

export class SubPaths {
  readonly #layout: VolumeLayout;
  readonly #mounter: Mounter;
  readonly #clock: Clock;
  readonly #opts: Required<SubPathOpts>;

  constructor(deps: { layout: VolumeLayout; mounter: Mounter; clock: Clock }, opts: SubPathOpts = {}) {
    this.#layout = deps.layout;
    this.#mounter = deps.mounter;
    this.#clock = deps.clock;
    this.#opts = {
      childCommand: opts.childCommand ?? partCommand('subpath-child', import.meta.url),
      childTimeoutMs: opts.childTimeoutMs ?? 30_000,
    };
  }

  /** Binds the part of the volume and returns where. Safe to repeat: a mount that is still right stays. */
  async prepare(request: SubPathRequest, signal: AbortSignal): Promise<string> {
    const { subPath } = request;
    checkPathLength(subPath);
    if (subPath.startsWith('/')) {
      throw new KubeletError('invalid', `error SubPath \`${subPath}\` must not be an absolute path`);
    }
    if (subPath.split('/').includes('..')) {
      throw new KubeletError('invalid', `unable to provision SubPath \`${subPath}\`: must not contain '..'`);
    }
    return (await this.#mayHang(request, signal))
      ? this.#prepareElsewhere(request, signal)
      : this.prepareHere(request, signal);
  }

  /** `prepare` in this process: for volumes that are known to answer. */
  async prepareHere(request: SubPathRequest, signal: AbortSignal): Promise<string> {
    const mountName = `volumeMount "${request.mountName}" of container "${request.container}"`;
    let source: PinnedFile;
    const root = await realpath(request.volumePath).catch((err: unknown) => {
      // Upstream looks at the volume first, by another call.
      const why = errnoOf(err) === 'ENOENT' ? `stat ${request.volumePath}: no such file or directory` : undefined;
      throw new KubeletError('invalid', why ?? `failed to prepare subPath for ${mountName}`, { cause: err });
    });
    try {
      source = await makeBeneath(root, request.subPath);
    } catch (err) {
      // Beneath a file there is nothing to create.
      const creates = errnoOf(err) !== undefined && errnoOf(err) !== 'ENOTDIR';
      const verb = creates ? 'create subPath directory' : 'prepare subPath';
      throw new KubeletError('invalid', `failed to ${verb} for ${mountName}`, { cause: err });
    }
    try {
      return await this.#bind(request, source, signal);
    } catch (err) {
      throw new KubeletError('internal', `failed to prepare subPath for ${mountName}`, { cause: err });
    } finally {
      await source.close();
    }
  }

  /** Whether looking into the volume may wait for a peer that is gone. A host path may lead there by a link. */
  async #mayHang({ uid, volumePath }: SubPathRequest, signal: AbortSignal): Promise<boolean> {
    const table = await this.#mounter.table(signal);
    if (!table.hasForeign) return false;
    return !volumePath.startsWith(`${this.#layout.podDir(uid)}/`) || !table.isLocal(volumePath);
  }

  async #prepareElsewhere(request: SubPathRequest, signal: AbortSignal): Promise<string> {
    const [command = '', ...args] = this.#opts.childCommand;
    const input = JSON.stringify({ rootDir: this.#layout.rootDir, request });
    const { childTimeoutMs } = this.#opts;
    const asks = { about: `subPaths of ${request.volumePath}`, cost: LARGE_CHILD };
    const { code, output } = await withDeadline(this.#clock, signal, childTimeoutMs, (own) =>
      runChild(command, [...args, input], own, undefined, asks),
    ).catch((err: unknown) => {
      if (signal.aborted || !isFault(err, 'deadline')) throw err;
      throw noAnswer(request.volumePath, childTimeoutMs, err);
    });
    if (code !== 0) throw new KubeletError('invalid', output);
    return output;
  }

  /** Removes every bind of a volume. */
  async cleanUp(uid: string, volume: string, signal: AbortSignal): Promise<void> {
    const root = this.#layout.volumeSubPathsDir(uid, volume);
    // Nearly no volume has any; the mount table is long on a full node.
    if (!(await isThere(root))) return;
    for (const mount of (await this.#mounter.table(signal)).beneath(root)) {
      await this.#mounter.unmount(mount.target, { detachIfDead: true }, signal);
    }
    for (const container of await namesIn(root)) {
      const dir = join(root, container);
      for (const index of await namesIn(dir)) await removeTarget(join(dir, index));
      await rmdir(dir);
    }
    await rmdir(root).catch(ignoreMissing);
    await rmdir(this.#layout.subPathsDir(uid)).catch(ignoreMissing);
  }

  async #bind(request: SubPathRequest, source: PinnedFile, signal: AbortSignal): Promise<string> {
    const volumeDir = this.#layout.volumeSubPathsDir(request.uid, request.volume);
    const containerDir = join(volumeDir, element(request.container));
    for (const dir of [this.#layout.subPathsDir(request.uid), volumeDir, containerDir]) await ensureDir(dir, 0o750);
    const target = join(containerDir, String(request.mountIndex));
    const wanted = await source.stat();
    // Where nothing was, nothing is mounted: the mount table is long on a full node.
    if (!(await makeTarget(target, wanted))) {
      if ((await this.#mounter.table(signal)).at(target) !== undefined) {
        const bound = await stat(target);
        if (bound.dev === wanted.dev && bound.ino === wanted.ino) return target;
        // The volume's content was replaced since the container's last start.
        await this.#mounter.unmount(target, {}, signal);
      }
      await removeTarget(target);
      if (!(await makeTarget(target, wanted))) throw new KubeletError('conflict', `${target} is in the way`);
    }
    await this.#mounter.bindDescriptor(source.fd, target, signal);
    return target;
  }
}

/** An empty directory or file to bind to. False when something is there already. */
async function makeTarget(path: string, of: Stats): Promise<boolean> {
  if (of.isDirectory()) return ensureDir(path, 0o750);
  try {
    await writeFile(path, '', { flag: 'wx', mode: 0o640 });
  } catch (err) {
    if (errnoOf(err) === 'EEXIST') return false;
    throw err;
  }
  await chmod(path, 0o640);
  return true;
}

/** Removes an unmounted bind target: an empty directory or an empty file, never anything with content. */
async function removeTarget(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return;
    if (errnoOf(err) !== 'ENOTDIR') throw err;
    if ((await stat(path)).size > 0) throw new KubeletError('conflict', `${path} is not empty`, { cause: err });
    await rm(path, { force: true });
  }
}

async function namesIn(path: string): Promise<string[]> {
  try {
    return await readdir(path);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return [];
    throw err;
  }
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    (err: unknown) => errnoOf(err) !== 'ENOENT',
  );

const ignoreMissing = (err: unknown): void => {
  if (!['ENOENT', 'ENOTEMPTY'].includes(errnoOf(err) ?? '')) throw err;
};
