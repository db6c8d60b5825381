// Volumes that a FlexVolume driver mounts. Those of drivers that attach are mounted once at a global place, for all pods that
// have the volume; which pods those are is read from their directories. What a driver does not support is done as upstream
// does it for every driver.
import { mkdir, readdir, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { bytesOf } from '../../core/quantity.ts';
import { uidOf } from '../../core/pod.ts';
import type { Disks } from '../../host/block/disk.ts';
import type { ChildMounts } from '../../host/mounts/child-mounts.ts';
import type { Mounter } from '../../host/mounts/mounter.ts';
import { errnoOf, isFault, KubeletError, messageOf } from '../../lib/errors.ts';
import type { KeyedLock } from '../../lib/keyed-lock.ts';
import type { Logger } from '../../lib/logger.ts';
import type { FilesystemStats } from '../filesystem-stats.ts';
import type { GroupOwner } from '../group-owner.ts';
import { element, type VolumeLayout } from '../layout.ts';
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
import type { ObjectSource } from '../plugins/sources.ts';
import { ensureDir, removeEmptyDir } from '../pod-dirs.ts';
import type { VolumeUsage } from '../volume-stats.ts';
import type { DriverCapabilities } from './driver-answer.ts';
import { mountOptionsFor, optionsText, sourceOf, type FlexSource } from './driver-options.ts';
import type { FlexDrivers } from './flex-drivers.ts';

export type FlexPluginDeps = {
  readonly drivers: Pick<FlexDrivers, 'known' | 'capabilities' | 'call'>;
  readonly layout: VolumeLayout;
  readonly mounter: Pick<Mounter, 'table' | 'unmount'>;
  readonly mounts: Pick<ChildMounts, 'bind'>;
  readonly disks: Pick<Disks, 'formatAndMount' | 'grow' | 'idle'>;
  readonly owner: Pick<GroupOwner, 'give'>;
  readonly stats: FilesystemStats;
  readonly objects: Pick<ObjectSource, 'secret'>;
  readonly log: Logger;
  /** One piece of work at a time on a volume that pods share. */
  readonly turns: KeyedLock;
  /** By driver and volume. */
  readonly devices: Map<string, string>;
};

type Named = Pick<VolumeRequest, 'specName' | 'persistent'>;

const FLEX = 'kubernetes.io/flexvolume';
const PRIVATE = 0o750;

export class FlexPlugin implements VolumePlugin {
  /** That of its driver. */
  readonly name: string;
  readonly refreshes = false;
  readonly stepTimeoutMs = PATIENT_STEP_MS;
  readonly #deps: FlexPluginDeps;

  constructor(driver: string, deps: FlexPluginDeps) {
    this.name = driver;
    this.#deps = deps;
  }

  attachedName({ specName }: Pick<VolumeRequest, 'specName'>): string | undefined {
    return this.#can?.attach === true ? `${this.name}/${specName}` : undefined;
  }

  uniqueName({ specName, persistent }: Named): string | undefined {
    return persistent === undefined ? undefined : this.attachedName({ specName });
  }

  /** Nobody knows yet whether the driver attaches; a name that no controller knows is soon left out. */
  reconstruct({ specName }: VolumeOnDisk): Promise<ReconstructedVolume> {
    const name = `${this.name}/${specName}`;
    return Promise.resolve({ attachedName: name, uniqueName: name });
  }

  /** Absent for drivers that need not be asked. */
  get expand(): VolumePlugin['expand'] {
    if (this.#can?.requiresFSResize === false) return undefined;
    return (request, mounted, bytes, signal) => this.#expand(request, mounted, bytes, signal);
  }

  async stats(_on: VolumeOnDisk, mounted: MountedVolume, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    return this.#can?.supportsMetrics === true ? this.#deps.stats.of(mounted, signal) : undefined;
  }

  async setUp(request: VolumeRequest, signal: AbortSignal): Promise<MountedVolume> {
    const source = sourceOf(request);
    const can = await this.#deps.drivers.capabilities(this.name, signal);
    if (!can.attach) return this.#mount(request, source, can, signal);
    return this.#deps.turns.run(this.#keyOf(request.specName), signal, async () => {
      await this.#mountDevice(request, source, signal);
      return this.#mount(request, source, can, signal);
    });
  }

  async tearDown(volume: VolumeToTearDown, signal: AbortSignal): Promise<void> {
    if (volume.volumeMode === 'Block') return;
    const { uid, specName, releaseDevice = directly } = volume;
    if (!(await this.#isThere(this.#globalMount(specName)))) return this.#unmount(uid, specName, signal);
    await this.#deps.turns.run(this.#keyOf(specName), signal, async () => {
      await this.#deps.disks.idle(this.#globalMount(specName), signal);
      await this.#unmount(uid, specName, signal);
      if (!(await this.#hasUsers(specName))) await releaseDevice(() => this.#unmountDevice(specName, signal));
    });
  }

  get #can(): DriverCapabilities | undefined {
    return this.#deps.drivers.known(this.name);
  }

  async #mountDevice(request: VolumeRequest, source: FlexSource, signal: AbortSignal): Promise<void> {
    const { drivers, disks, mounter, devices } = this.#deps;
    const { specName, attachedPath, progress } = request;
    const options = optionsText(source, specName);
    progress(`waiting for driver ${this.name} to say where it is attached`);
    const found = await staged('MountVolume.WaitForAttach', signal, () =>
      drivers.call(this.name, 'waitforattach', [attachedPath, options], signal),
    );
    const device = found === undefined ? attachedPath : found.device;
    devices.set(this.#keyOf(specName), device);
    // The answer is not used by anybody; a failure counts.
    await staged('MountVolume.GetDeviceMountPath', signal, () =>
      drivers.call(this.name, 'getvolumename', [options], signal),
    );
    const target = this.#globalMount(specName);
    if ((await mounter.table(signal)).at(target) !== undefined) return;
    await mkdir(target, { recursive: true, mode: PRIVATE });
    progress(`waiting for driver ${this.name} to mount its device`);
    await staged('MountVolume.MountDevice', signal, async () => {
      const done = await drivers.call(this.name, 'mountdevice', [target, device, options], signal);
      // One that attaches nothing has no device either.
      if (done !== undefined || device === '') return;
      const how = [source.readOnly ? 'ro' : 'rw'];
      await disks.formatAndMount({ device, target, fsType: source.fsType, options: how, progress }, signal);
    });
  }

  async #mount(
    request: VolumeRequest,
    source: FlexSource,
    can: DriverCapabilities,
    signal: AbortSignal,
  ): Promise<MountedVolume> {
    const { layout, mounter } = this.#deps;
    const { pod, specName } = request;
    const dir = layout.volumeDir(uidOf(pod), this.name, specName);
    const wasThere = (await mounter.table(signal)).at(dir) !== undefined;
    if (!wasThere) {
      await ensureDir(dirname(dir), PRIVATE);
      await ensureDir(dir, PRIVATE);
      await this.#mountAt(dir, request, source, signal);
    }
    if (!source.readOnly && can.fsGroup && !(wasThere && request.inUse))
      await this.#give(request, dir, wasThere, signal);
    return { hostPath: dir, readOnly: source.readOnly, selinuxRelabel: can.selinuxRelabel && !source.readOnly };
  }

  async #mountAt(dir: string, request: VolumeRequest, source: FlexSource, signal: AbortSignal): Promise<void> {
    const { drivers, mounts } = this.#deps;
    const { pod, specName, progress } = request;
    try {
      const secret = await this.#secret(source, signal);
      progress(`waiting for driver ${this.name} to mount it`);
      const options = optionsText(source, specName, mountOptionsFor(pod, secret));
      const withSecrets = source.secret !== undefined;
      const done = await drivers.call(this.name, 'mount', [dir, options], signal, { withSecrets });
      if (done === undefined) await mounts.bind(this.#globalMount(specName), dir, [], signal);
    } catch (err) {
      // Mounted all the same, or with something in it, it stays and is taken down later.
      if (!signal.aborted) await rmdir(dir).catch(() => undefined);
      throw err;
    }
  }

  async #secret({ secret }: FlexSource, signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    if (secret === undefined) return {};
    const { namespace, name } = secret;
    try {
      const { data = {}, type } = await this.#deps.objects.secret(namespace, name, signal);
      if (type !== this.name) throw new KubeletError('invalid', `cannot get secret of type ${this.name}`);
      return data;
    } catch (err) {
      signal.throwIfAborted();
      const kind = isFault(err) ? err.kind : 'unavailable';
      throw new KubeletError(kind, `couldn't get secret ${namespace}/${name} err: ${messageOf(err)}`, { cause: err });
    }
  }

  /** As upstream, a volume that cannot be given to the group is used all the same. One that was cut off is looked at again. */
  async #give(request: VolumeRequest, dir: string, wasThere: boolean, signal: AbortSignal): Promise<void> {
    const { owner, log } = this.#deps;
    const isEnough = wasThere || request.pod.spec.securityContext?.fsGroupChangePolicy === 'OnRootMismatch';
    try {
      const how = { readOnly: false, changePolicy: isEnough ? 'OnRootMismatch' : 'Always' } as const;
      await owner.give(request, dir, how, signal);
    } catch (err) {
      signal.throwIfAborted();
      log.warn('volume could not be given to the group of its pod', { volume: request.specName, err });
    }
  }

  /** Also of a volume that a driver mounts nothing for: it is told of every directory it was given. */
  async #unmount(uid: string, specName: string, signal: AbortSignal): Promise<void> {
    const dir = this.#deps.layout.volumeDir(uid, this.name, specName);
    if (!(await this.#isThere(dir))) return;
    const done = await this.#deps.drivers.call(this.name, 'unmount', [dir], signal).catch(async (err: unknown) => {
      signal.throwIfAborted();
      const isGone = isFault(err) && err.detail['driverGone'] === true;
      // Where nothing is mounted, as after a reboot, nobody is needed.
      if (!isGone || (await this.#deps.mounter.table(signal)).beneath(dir).length > 0) throw err;
    });
    if (done === undefined) await this.#unmountAll(dir, signal);
    await removeEmptyDir(dir);
  }

  async #unmountDevice(specName: string, signal: AbortSignal): Promise<void> {
    const { drivers, mounter, devices } = this.#deps;
    const target = this.#globalMount(specName);
    if ((await mounter.table(signal)).at(target) !== undefined) {
      const done = await drivers.call(this.name, 'unmountdevice', [target], signal);
      if (done === undefined) await this.#unmountAll(target, signal);
    } else await mounter.unmount(target, { ofDisk: true }, signal);
    await removeEmptyDir(target);
    devices.delete(this.#keyOf(specName));
  }

  async #unmountAll(dir: string, signal: AbortSignal): Promise<void> {
    const { mounter } = this.#deps;
    for (const { target } of (await mounter.table(signal)).beneath(dir))
      await mounter.unmount(target, { detachIfDead: true }, signal);
  }

  async #expand(request: VolumeRequest, mounted: MountedVolume, bytes: number, signal: AbortSignal): Promise<void> {
    const { drivers, devices, disks } = this.#deps;
    const { specName, persistent, attachedPath } = request;
    const device = devices.get(this.#keyOf(specName)) ?? attachedPath;
    const before = bytesOf(persistent?.claim?.status?.capacity?.['storage']);
    const options = optionsText(sourceOf(request), specName);
    const args = [options, device, mounted.hostPath, String(bytes), String(before)];
    const done = await drivers.call(this.name, 'expandfs', args, signal);
    if (done === undefined && device !== '') await disks.grow(device, mounted.hostPath, signal);
  }

  /** Whether any pod has a directory for this volume. */
  async #hasUsers(specName: string): Promise<boolean> {
    const { layout } = this.#deps;
    for (const uid of await namesIn(layout.podsDir))
      if ((await namesIn(layout.pluginVolumesDir(uid, this.name))).includes(specName)) return true;
    return false;
  }

  /** Asks the directory above, which is this node's own: what is mounted at `path` may not answer. */
  async #isThere(path: string): Promise<boolean> {
    return (await namesIn(dirname(path))).includes(path.slice(dirname(path).length + 1));
  }

  #globalMount(specName: string): string {
    return join(this.#deps.layout.sharedPluginDir(`${FLEX}/${this.name}`), 'mounts', element(specName));
  }

  #keyOf(specName: string): string {
    return `${this.name}/${specName}`;
  }
}

async function staged<T>(stage: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (err) {
    signal.throwIfAborted();
    const [kind, detail] = isFault(err) ? [err.kind, err.detail] : (['unavailable', {}] as const);
    throw new KubeletError(kind, messageOf(err), { cause: err, detail: { ...detail, stage } });
  }
}

async function namesIn(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return [];
    throw err;
  }
}
