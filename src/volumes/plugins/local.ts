// local: a directory or a disk of this node that is a persistent volume. A directory is bound into the pod; a disk is given
// a file system if it has none and mounted once for all pods, or handed out as it is. What pods use is read from the mount
// table, so that a restart forgets nobody.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { EventRecorder } from '../../core/events.ts';
import { uidOf } from '../../core/pod.ts';
import type { Disks } from '../../host/block/disk.ts';
import type { HostFiles } from '../../host/mounts/host-files.ts';
import type { Mounter } from '../../host/mounts/mounter.ts';
import { KubeletError, messageOf } from '../../lib/errors.ts';
import { KeyedLock } from '../../lib/keyed-lock.ts';
import { tellMapped, type DeviceMap, type DeviceMapPlace } from '../block/device-map.ts';
import type { FilesystemStats } from '../filesystem-stats.ts';
import { element, escapePlugin, type VolumeLayout } from '../layout.ts';
import {
  directly,
  PATIENT_STEP_MS,
  type MountedVolume,
  type ReconstructedVolume,
  type VolumeOnDisk,
  type VolumePlugin,
  type VolumeRequest,
  type VolumeToTearDown,
} from '../plugin.ts';
import type { PodBinds } from '../pod-binds.ts';
import { removeEmptyDir } from '../pod-dirs.ts';
import type { VolumeUsage } from '../volume-stats.ts';
import { optionsOf } from './mount-options.ts';

export type LocalDeps = {
  readonly layout: VolumeLayout;
  readonly mounter: Pick<Mounter, 'table' | 'unmount'>;
  readonly files: Pick<HostFiles, 'kindOf' | 'resolve'>;
  readonly disks: Pick<Disks, 'formatAndMount' | 'grow' | 'idle'>;
  readonly deviceMap: Pick<DeviceMap, 'map' | 'unmap' | 'users' | 'removeGlobalMap'>;
  readonly binds: PodBinds;
  readonly stats: FilesystemStats;
  readonly events: EventRecorder;
};

type LocalSource = { readonly path: string; readonly fsType: string };

const PRIVATE = 0o750;

export class LocalPlugin implements VolumePlugin {
  readonly name = 'kubernetes.io/local-volume';
  readonly refreshes = false;
  readonly takesMountOptions = true;
  readonly makesDevices = true;
  readonly stepTimeoutMs = PATIENT_STEP_MS;
  readonly #deps: LocalDeps;
  readonly #turns = new KeyedLock();

  constructor(deps: LocalDeps) {
    this.#deps = deps;
  }

  uniqueName({ specName }: Pick<VolumeRequest, 'specName'>): string {
    return `${this.name}/${specName}`;
  }

  reconstruct(volume: VolumeOnDisk): Promise<ReconstructedVolume> {
    return Promise.resolve({ uniqueName: this.uniqueName(volume) });
  }

  async setUp(request: VolumeRequest, signal: AbortSignal): Promise<MountedVolume> {
    const source = sourceOf(request);
    return this.#turns.run(request.specName, signal, () =>
      request.volumeMode === 'Block' ? this.#map(request, source, signal) : this.#mount(request, source, signal),
    );
  }

  tearDown(volume: VolumeToTearDown, signal: AbortSignal): Promise<void> {
    return this.#turns.run(volume.specName, signal, () =>
      volume.volumeMode === 'Block' ? this.#unmap(volume, signal) : this.#unmount(volume, signal),
    );
  }

  /** A directory and a raw device have nothing to grow. */
  async expand(request: VolumeRequest, _mounted: MountedVolume, _bytes: number, signal: AbortSignal): Promise<void> {
    const target = this.#globalMount(request.specName);
    const disk = (await this.#deps.mounter.table(signal)).at(target);
    if (request.volumeMode === 'Block' || disk === undefined) return;
    await this.#turns.run(request.specName, signal, () => this.#deps.disks.grow(disk.source, target, signal));
  }

  stats(_volume: VolumeOnDisk, mounted: MountedVolume, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    return this.#deps.stats.of(mounted, signal);
  }

  async #mount(request: VolumeRequest, source: LocalSource, signal: AbortSignal): Promise<MountedVolume> {
    const { binds } = this.#deps;
    const { specName, readOnly, persistent, progress } = request;
    progress(`looking at ${source.path}`);
    const kind = await this.#deps.files.kindOf(source.path, signal);
    if (kind === 'missing') throw notUsable(`path "${source.path}" does not exist`);
    if (kind !== 'directory' && kind !== 'blockDevice')
      throw notUsable('only directory and block device are supported');
    const options = optionsOf(persistent?.mountOptions ?? [], readOnly);
    const from = kind === 'directory' ? source.path : await this.#mountDisk(request, source, options, signal);
    const place = { uid: uidOf(request.pod), plugin: this.name, specName };
    const { path, adopted } = await binds.bind(place, from, options, signal);
    if (!readOnly) await binds.giveToGroup(request, place, { adopted }, signal);
    return { hostPath: path, readOnly, selinuxRelabel: !readOnly };
  }

  /** Mounts a disk for all pods, once. */
  async #mountDisk(
    { specName, progress }: VolumeRequest,
    { path: device, fsType }: LocalSource,
    options: readonly string[],
    signal: AbortSignal,
  ): Promise<string> {
    const target = this.#globalMount(specName);
    if ((await this.#deps.mounter.table(signal)).at(target) !== undefined) return target;
    await mkdir(target, { recursive: true, mode: PRIVATE });
    try {
      await this.#deps.disks.formatAndMount({ device, target, fsType, options, progress }, signal);
    } catch (err) {
      signal.throwIfAborted();
      // It may be mounted although nobody said so: then the next attempt finds it.
      if ((await this.#deps.mounter.table(signal)).at(target) === undefined) await removeEmptyDir(target);
      const type = fsType === '' ? 'ext4' : fsType;
      throw new KubeletError(
        'unavailable',
        `local: failed to mount device ${device} at ${target} (fstype: ${type}), error ${messageOf(err)}`,
        { cause: err, detail: { stage: 'MountVolume.MountDevice' } },
      );
    }
    return target;
  }

  async #unmount({ uid, specName, releaseDevice = directly }: VolumeToTearDown, signal: AbortSignal): Promise<void> {
    const { binds, disks } = this.#deps;
    const target = this.#globalMount(specName);
    const place = { uid, plugin: this.name, specName };
    await disks.idle(target, signal);
    await binds.unbind(place, {}, signal);
    if (!(await binds.isUsed(target, signal))) await this.#unmountShared(target, releaseDevice, signal);
    await binds.removeDir(place);
  }

  async #unmountShared(target: string, releaseDevice: typeof directly, signal: AbortSignal): Promise<void> {
    const { mounter } = this.#deps;
    const unmountDisk = async (): Promise<void> => {
      await mounter.unmount(target, { ofDisk: true }, signal);
      await removeEmptyDir(target);
    };
    // A directory is bound into each pod and nowhere else.
    await ((await mounter.table(signal)).at(target) === undefined ? unmountDisk() : releaseDevice(unmountDisk));
  }

  async #map(request: VolumeRequest, { path }: LocalSource, signal: AbortSignal): Promise<MountedVolume> {
    const { files, deviceMap } = this.#deps;
    const { pod, specName, readOnly } = request;
    const place = this.#mapPlace({ uid: uidOf(pod), specName });
    const device = await files.resolve(path, signal).catch((err: unknown) => {
      signal.throwIfAborted();
      throw staged('MapVolume.EvalHostSymlinks', err);
    });
    const link = await deviceMap.map(place, device, signal).catch((err: unknown) => {
      signal.throwIfAborted();
      throw staged('MapVolume.MapBlockVolume', err);
    });
    if (!request.inUse) tellMapped(this.#deps, pod, place);
    return { hostPath: '', devicePath: link, readOnly, selinuxRelabel: false };
  }

  async #unmap(volume: VolumeToTearDown, signal: AbortSignal): Promise<void> {
    const { deviceMap } = this.#deps;
    const { releaseDevice = directly } = volume;
    const place = this.#mapPlace(volume);
    await deviceMap.unmap(place, signal, async () => {
      if ((await deviceMap.users(place.globalMapDir)).length === 0)
        await releaseDevice(() => deviceMap.removeGlobalMap(place.globalMapDir));
    });
  }

  #globalMount(specName: string): string {
    return join(this.#deps.layout.sharedPluginDir(this.name), 'mounts', element(specName));
  }

  #mapPlace({ uid, specName }: Pick<VolumeOnDisk, 'uid' | 'specName'>): DeviceMapPlace {
    // Upstream writes the plugin's name as one element here, and only here.
    const dir = this.#deps.layout.sharedPluginDir(escapePlugin(this.name));
    return { globalMapDir: join(dir, 'volumeDevices', element(specName)), uid, plugin: this.name, specName };
  }
}

function sourceOf({ persistent }: VolumeRequest): LocalSource {
  const source = persistent?.volume.spec['local'] as { path?: unknown; fsType?: unknown } | null | undefined;
  const path = typeof source?.path === 'string' ? source.path : '';
  if (!path.startsWith('/')) throw notUsable(`path "${path}" is not absolute`);
  if (path.split('/').includes('..'))
    throw new KubeletError('invalid', `invalid path: ${path} path must not contain '..'`);
  return { path, fsType: typeof source?.fsType === 'string' ? source.fsType : '' };
}

const notUsable = (message: string): KubeletError =>
  new KubeletError('invalid', message, { detail: { stage: 'MountVolume.NewMounter initialization failed' } });

const staged = (stage: string, err: unknown): KubeletError =>
  new KubeletError('unavailable', messageOf(err), { cause: err, detail: { stage } });
