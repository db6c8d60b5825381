// nfs: a directory of a file server, mounted for each pod by itself. A server that does not answer costs the pod its start
// and a child process until the deadline, nothing else; its mount can be removed all the same.
import { uidOf } from '../../core/pod.ts';
import type { ChildMounts } from '../../host/mounts/child-mounts.ts';
import type { Mounter } from '../../host/mounts/mounter.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { FilesystemStats } from '../filesystem-stats.ts';
import type { VolumeLayout } from '../layout.ts';
import type { MountedVolume, VolumeOnDisk, VolumePlugin, VolumeRequest } from '../plugin.ts';
import { ensureDir, removeEmptyDir } from '../pod-dirs.ts';
import type { VolumeUsage } from '../volume-stats.ts';
import { optionsOf } from './mount-options.ts';

export type NfsDeps = {
  readonly layout: VolumeLayout;
  readonly mounter: Pick<Mounter, 'table' | 'unmount'>;
  readonly mounts: Pick<ChildMounts, 'mount'>;
  readonly stats: FilesystemStats;
};

type NfsSource = { readonly server: string; readonly path: string; readonly readOnly: boolean };

/** An unmount may run into its own deadline twice, by force the second time, before the mount is detached. */
const STEP_MS = 300_000;

export class NfsPlugin implements VolumePlugin {
  readonly name = 'kubernetes.io/nfs';
  readonly refreshes = false;
  readonly takesMountOptions = true;
  readonly stepTimeoutMs = STEP_MS;
  readonly #deps: NfsDeps;

  constructor(deps: NfsDeps) {
    this.#deps = deps;
  }

  async setUp(request: VolumeRequest, signal: AbortSignal): Promise<MountedVolume> {
    const { server, path, readOnly } = sourceOf(request);
    const { layout, mounter, mounts } = this.#deps;
    const uid = uidOf(request.pod);
    const target = layout.volumeDir(uid, this.name, request.specName);
    const mounted = { hostPath: target, readOnly, selinuxRelabel: false };
    if ((await mounter.table(signal)).at(target) !== undefined) return mounted;
    await ensureDir(layout.pluginVolumesDir(uid, this.name), 0o750);
    await ensureDir(target, 0o750);
    const source = `${server.includes(':') && !server.startsWith('[') ? `[${server}]` : server}:${path}`;
    request.progress(`mounting ${source}`);
    const options = optionsOf(request.persistent?.mountOptions ?? [], readOnly);
    try {
      await mounts.mount('nfs', source, target, options, signal);
    } catch (err) {
      signal.throwIfAborted();
      await this.#remove(target, signal);
      throw err;
    }
    return mounted;
  }

  stats(_volume: VolumeOnDisk, mounted: MountedVolume, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    return this.#deps.stats.of(mounted, signal);
  }

  tearDown({ uid, specName }: VolumeOnDisk, signal: AbortSignal): Promise<void> {
    return this.#remove(this.#deps.layout.volumeDir(uid, this.name, specName), signal);
  }

  async #remove(target: string, signal: AbortSignal): Promise<void> {
    const { mounter } = this.#deps;
    for (const mount of (await mounter.table(signal)).beneath(target))
      await mounter.unmount(mount.target, { forceIfDead: true, detachIfDead: true }, signal);
    await removeEmptyDir(target);
  }
}

function sourceOf({ volume, persistent, readOnly }: VolumeRequest): NfsSource {
  const source = (persistent === undefined ? volume.nfs : persistent.volume.spec['nfs']) as
    | { server?: unknown; path?: unknown; readOnly?: unknown }
    | null
    | undefined;
  const { server, path } = source ?? {};
  if (typeof server !== 'string' || typeof path !== 'string' || server === '')
    throw new KubeletError('invalid', 'an NFS volume names a server and a path');
  // Helpers of mount(8) would take it for an option.
  if (server.startsWith('-') || /\s/.test(server))
    throw new KubeletError('invalid', `${JSON.stringify(server)} is not the name of a server`);
  return { server, path, readOnly: persistent === undefined ? source?.readOnly === true : readOnly };
}
