// A disk that is brought to this node over a network (iSCSI, fibre channel), mounted once for all pods and bound into each,
// or handed out as a device. How a kind finds and releases its disk is the attacher's; this is what they have in common.
// What was attached for a pod is written down beside the pod before anything happens, so that a restart can undo it.
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { EventRecorder } from '../../core/events.ts';
import { uidOf, type Pod } from '../../core/pod.ts';
import { deviceNumber } from '../../host/block/device-facts.ts';
import type { Disks } from '../../host/block/disk.ts';
import type { Mounter } from '../../host/mounts/mounter.ts';
import { errnoOf, isFault, KubeletError, messageOf } from '../../lib/errors.ts';
import { KeyedLock } from '../../lib/keyed-lock.ts';
import type { Logger } from '../../lib/logger.ts';
import { readNote, removeNote, writeNote } from '../attach-notes.ts';
import { tellMapped, type DeviceMap, type DeviceMapPlace } from '../block/device-map.ts';
import type { FilesystemStats } from '../filesystem-stats.ts';
import type { GroupOwner } from '../group-owner.ts';
import type { VolumeLayout } from '../layout.ts';
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

export type DiskIdentity = {
  /** What one thing at a time is done about. */
  readonly turn: string;
  /** Under the plugin's own directory: one element or several. */
  readonly directory: string;
  /** Of the volume among all of its kind. */
  readonly volumeName: string;
};

export type AttachedDisk<Config> = DiskIdentity & {
  readonly fsType: string;
  readonly readOnly: boolean;
  /** All that is needed to detach it, without secrets. */
  readonly config: Config;
};

/** How one kind of disk comes and goes. */
export interface DiskAttacher<Config> {
  readonly plugin: string;
  /** `invalid` if the source makes no sense. */
  describe(request: Pick<VolumeRequest, 'pod' | 'volume' | 'specName' | 'persistent'>): AttachedDisk<Config>;
  /** Of a config that was written down, perhaps damaged; undefined then. */
  identify(config: unknown): Known<Config> | undefined;
  /** The path of the device, links followed. */
  attach(disk: AttachedDisk<Config>, request: VolumeRequest, signal: AbortSignal): Promise<string>;
  /** `others`: directories of volumes of this kind that are still in use. */
  detach(config: Config, others: readonly string[], signal: AbortSignal): Promise<void>;
  /** A file that upstream keeps in the volume's directory, beneath what is mounted there. */
  stateFile?(config: Config, specName: string): { readonly name: string; readonly content: string };
}

export type AttachedDiskDeps = {
  readonly layout: VolumeLayout;
  readonly mounter: Pick<Mounter, 'table' | 'unmount'>;
  readonly disks: Pick<Disks, 'formatAndMount' | 'idle'>;
  readonly deviceMap: Pick<DeviceMap, 'map' | 'unmap' | 'users' | 'removeGlobalMap'>;
  readonly binds: PodBinds;
  readonly stats: FilesystemStats;
  readonly owner: Pick<GroupOwner, 'give'>;
  readonly events: EventRecorder;
  readonly log: Logger;
};

type Known<Config> = DiskIdentity & { readonly config: Config };

const PRIVATE = 0o750;

export class AttachedDiskPlugin<Config> implements VolumePlugin {
  readonly name: string;
  readonly refreshes = false;
  readonly takesMountOptions = true;
  readonly makesDevices = true;
  readonly stepTimeoutMs = PATIENT_STEP_MS;
  readonly #attacher: DiskAttacher<Config>;
  readonly #deps: AttachedDiskDeps;
  readonly #turns = new KeyedLock();

  constructor(attacher: DiskAttacher<Config>, deps: AttachedDiskDeps) {
    this.name = attacher.plugin;
    this.#attacher = attacher;
    this.#deps = deps;
  }

  /** Undefined for a source that makes no sense: `setUp` will say so. */
  uniqueName(request: Pick<VolumeRequest, 'pod' | 'volume' | 'specName' | 'persistent'>): string | undefined {
    try {
      return `${this.name}/${this.#attacher.describe(request).volumeName}`;
    } catch (err) {
      if (isFault(err, 'invalid')) return undefined;
      throw err;
    }
  }

  readonly attachesOnNode = true;

  attachedName(request: Pick<VolumeRequest, 'pod' | 'volume' | 'specName' | 'persistent'>): string | undefined {
    return this.uniqueName(request);
  }

  async reconstruct(volume: VolumeOnDisk): Promise<ReconstructedVolume> {
    const identity = await this.#note(volume);
    if (identity === undefined) return {};
    const name = `${this.name}/${identity.volumeName}`;
    return { attachedName: name, uniqueName: name };
  }

  stats(_volume: VolumeOnDisk, mounted: MountedVolume, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    return this.#deps.stats.of(mounted, signal);
  }

  async setUp(request: VolumeRequest, signal: AbortSignal): Promise<MountedVolume> {
    const disk = this.#attacher.describe(request);
    return this.#turns.run(disk.turn, signal, async () => {
      const volume = { uid: uidOf(request.pod), specName: request.specName, volumeMode: request.volumeMode };
      await writeNote(this.#deps.layout, this.name, volume, disk.config);
      const verb = request.volumeMode === 'Block' ? 'MapVolume' : 'MountVolume';
      const device = await this.#attacher.attach(disk, request, signal).catch((err: unknown) => {
        signal.throwIfAborted();
        throw staged(`${verb}.WaitForAttach`, err);
      });
      return request.volumeMode === 'Block'
        ? this.#map(disk, request, device, signal)
        : this.#mount(disk, request, device, signal);
    });
  }

  async tearDown(volume: VolumeToTearDown, signal: AbortSignal): Promise<void> {
    const { releaseDevice = directly } = volume;
    const identity = await this.#note(volume);
    if (identity === undefined) {
      await this.#releaseUnnoted(volume, releaseDevice, signal);
      return removeNote(this.#deps.layout, this.name, volume);
    }
    await this.#turns.run(identity.turn, signal, async () => {
      const isBlock = volume.volumeMode === 'Block';
      // What an aborted attempt began still writes to the device.
      await this.#deps.disks.idle(this.#globalMount(identity), signal);
      await (isBlock ? this.#unmap(volume, identity, signal) : this.#release(volume, signal));
      if (!(await this.#isUsed(identity, signal)))
        await releaseDevice(async () => {
          await (isBlock ? this.#removeMap(volume, identity) : this.#unmountShared(volume, identity, signal));
          await this.#attacher.detach(identity.config, await this.#others(identity), signal);
        });
      await removeNote(this.#deps.layout, this.name, volume);
    });
  }

  async #mount(
    disk: AttachedDisk<Config>,
    request: VolumeRequest,
    device: string,
    signal: AbortSignal,
  ): Promise<MountedVolume> {
    const { readOnly, fsType } = disk;
    const { progress, specName } = request;
    const options = optionsOf(request.persistent?.mountOptions ?? [], readOnly);
    const target = this.#globalMount(disk);
    if ((await this.#deps.mounter.table(signal)).at(target) === undefined) {
      await this.#prepareDir(target, disk.config, specName);
      await this.#deps.disks
        .formatAndMount({ device, target, fsType, options, progress }, signal)
        .catch((err: unknown) => {
          signal.throwIfAborted();
          throw staged('MountVolume.MountDevice', err);
        });
    }
    const place = { uid: uidOf(request.pod), plugin: this.name, specName };
    const { path, adopted } = await this.#deps.binds.bind(place, target, options, signal);
    if (!readOnly && !adopted) await this.#give(request, path, signal);
    return { hostPath: path, readOnly, selinuxRelabel: !readOnly };
  }

  /** As upstream, a volume that cannot be given to the group is used all the same. */
  async #give(request: VolumeRequest, path: string, signal: AbortSignal): Promise<void> {
    const changePolicy = policyOf(request.pod);
    try {
      await this.#deps.owner.give(request, path, { readOnly: false, changePolicy }, signal);
    } catch (err) {
      signal.throwIfAborted();
      this.#deps.log.warn('volume could not be given to the group of its pod', { volume: request.specName, err });
    }
  }

  /** Whether a pod has the disk, as a file system or as a device. */
  async #isUsed(identity: DiskIdentity, signal: AbortSignal): Promise<boolean> {
    const { binds, deviceMap } = this.#deps;
    if (await binds.isUsed(this.#globalMount(identity), signal)) return true;
    return (await deviceMap.users(this.#globalMap(identity))).length > 0;
  }

  async #unmountShared({ specName }: VolumeOnDisk, identity: Known<Config>, signal: AbortSignal): Promise<void> {
    const target = this.#globalMount(identity);
    await this.#deps.mounter.unmount(target, { ofDisk: true }, signal);
    await this.#removeState(target, identity.config, specName);
    await removeEmptyDir(target);
    await removeEmptyParents(dirname(target), this.#dir());
  }

  /** Of a device that another kubelet mapped the link is known, and by its number the bind under a global map. */
  async #unmapUnnoted({ uid, specName }: VolumeOnDisk, signal: AbortSignal): Promise<void> {
    const { deviceMap, layout } = this.#deps;
    const root = join(this.#dir(), 'volumeDevices');
    const link = layout.deviceLink(uid, this.name, specName);
    const number = await deviceNumber(link);
    for (const path of await namesIn(root, true)) {
      // Bound or not: a link that leads nowhere belongs to a device that is gone.
      if (basename(path) !== uid || (await deviceNumber(join(root, path))) !== number) continue;
      const globalMapDir = join(root, dirname(path));
      await deviceMap.unmap({ globalMapDir, uid, plugin: this.name, specName }, signal);
    }
    await rm(link, { force: true });
  }

  /** Of a volume that another kubelet set up only what is mounted or linked is known. */
  async #releaseUnnoted(volume: VolumeOnDisk, releaseDevice: typeof directly, signal: AbortSignal): Promise<void> {
    const { mounter, binds } = this.#deps;
    if (volume.volumeMode === 'Block') return this.#unmapUnnoted(volume, signal);
    const table = await mounter.table(signal);
    const own = table.at(binds.pathOf({ ...volume, plugin: this.name }));
    const shared =
      own === undefined ? undefined : table.beneath(this.#dir()).find(({ device }) => device === own.device);
    await this.#release(volume, signal);
    if (shared === undefined || (await binds.isUsed(shared.target, signal))) return;
    await releaseDevice(() => mounter.unmount(shared.target, { ofDisk: true }, signal));
  }

  #release({ uid, specName }: VolumeOnDisk, signal: AbortSignal): Promise<void> {
    return this.#deps.binds.release({ uid, plugin: this.name, specName }, {}, signal);
  }

  async #map(
    disk: AttachedDisk<Config>,
    request: VolumeRequest,
    device: string,
    signal: AbortSignal,
  ): Promise<MountedVolume> {
    const place = this.#mapPlace(disk, uidOf(request.pod), request.specName);
    await this.#prepareDir(place.globalMapDir, disk.config, request.specName);
    const devicePath = await this.#deps.deviceMap.map(place, device, signal).catch((err: unknown) => {
      signal.throwIfAborted();
      throw staged('MapVolume.MapBlockVolume', err);
    });
    if (!request.inUse) tellMapped(this.#deps, request.pod, place);
    return { hostPath: '', devicePath, readOnly: disk.readOnly, selinuxRelabel: false };
  }

  #unmap({ uid, specName }: VolumeOnDisk, identity: DiskIdentity, signal: AbortSignal): Promise<void> {
    return this.#deps.deviceMap.unmap(this.#mapPlace(identity, uid, specName), signal);
  }

  async #removeMap({ uid, specName }: VolumeOnDisk, identity: Known<Config>): Promise<void> {
    const { globalMapDir } = this.#mapPlace(identity, uid, specName);
    await this.#removeState(globalMapDir, identity.config, specName);
    await this.#deps.deviceMap.removeGlobalMap(globalMapDir);
    await removeEmptyParents(dirname(globalMapDir), this.#dir());
  }

  async #prepareDir(dir: string, config: Config, specName: string): Promise<void> {
    await mkdir(dir, { recursive: true, mode: PRIVATE });
    const state = this.#attacher.stateFile?.(config, specName);
    if (state !== undefined) await writeFile(join(dir, state.name), state.content);
  }

  async #removeState(dir: string, config: Config, specName: string): Promise<void> {
    const state = this.#attacher.stateFile?.(config, specName);
    if (state !== undefined) await rm(join(dir, state.name), { force: true });
  }

  /** Directories of this kind's volumes, but this one. */
  async #others(identity: DiskIdentity): Promise<string[]> {
    const own = basename(identity.directory);
    const parent = dirname(identity.directory);
    const names = await Promise.all(
      [this.#dir(), join(this.#dir(), 'volumeDevices')].map((dir) => namesIn(join(dir, parent))),
    );
    return names.flat().filter((name) => name !== own);
  }

  #dir(): string {
    return this.#deps.layout.sharedPluginDir(this.name);
  }

  #globalMount({ directory }: DiskIdentity): string {
    return join(this.#dir(), directory);
  }

  #globalMap({ directory }: DiskIdentity): string {
    return join(this.#dir(), 'volumeDevices', directory);
  }

  #mapPlace(identity: DiskIdentity, uid: string, specName: string): DeviceMapPlace {
    return { globalMapDir: this.#globalMap(identity), uid, plugin: this.name, specName };
  }

  async #note(volume: VolumeOnDisk): Promise<Known<Config> | undefined> {
    const { layout, log } = this.#deps;
    const note = await readNote(layout, this.name, volume).catch((err: unknown) => {
      log.warn('note about an attached disk cannot be read', { volume: volume.specName, err });
    });
    return note == null ? undefined : this.#attacher.identify(note.config);
  }
}

const policyOf = (pod: Pod): 'Always' | 'OnRootMismatch' =>
  pod.spec.securityContext?.fsGroupChangePolicy === 'OnRootMismatch' ? 'OnRootMismatch' : 'Always';

const staged = (stage: string, err: unknown): KubeletError =>
  new KubeletError('unavailable', messageOf(err), {
    cause: err,
    detail: { ...(err instanceof KubeletError ? err.detail : {}), stage },
  });

async function removeEmptyParents(dir: string, stop: string): Promise<void> {
  if (dir === stop || !dir.startsWith(`${stop}/`)) return;
  try {
    await removeEmptyDir(dir);
  } catch (err) {
    if (errnoOf(err) === 'ENOTEMPTY') return;
    throw err;
  }
  await removeEmptyParents(dirname(dir), stop);
}

async function namesIn(dir: string, recursive = false): Promise<string[]> {
  try {
    return await readdir(dir, { recursive });
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return [];
    throw err;
  }
}
