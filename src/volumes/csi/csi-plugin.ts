// CSI volumes with a filesystem: staged once per volume on this node, published to each pod. `vol_data.json` is written
// before the driver is called and removed after it has taken the volume down, so that whatever happens in between is
// found and finished by a later run.
import { mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { uidOf } from '../../core/pod.ts';
import type { Mounter } from '../../host/mounts/mounter.ts';
import { isFault, KubeletError, messageOf } from '../../lib/errors.ts';
import { isHopelessCode } from '../claims/expansion.ts';
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
import { ensureDir } from '../pod-dirs.ts';
import { contextOption, relabelsFiles, selinuxMountOf } from '../selinux-mount.ts';
import type { VolumeUsage } from '../volume-stats.ts';
import { CsiBlock, removeDir, type CsiBlockDeps } from './csi-block.ts';
import type { NodeCapabilities } from './csi-client.ts';
import type { CsiDrivers } from './csi-drivers.ts';
import { afterReading, forEach, inStage, isFinal, stageError } from './csi-errors.ts';
import { CSI_PLUGIN, metricNameOf, uniqueNameOf, type CsiLayout } from './csi-layout.ts';
import { secretValues, tokensText, type CsiObjects } from './csi-objects.ts';
import {
  attachedFor,
  clientOf,
  limitReached,
  publishedData,
  publishSecrets,
  userOf,
  type DriverAccess,
} from './driver-access.ts';
import {
  capabilityOf,
  csiVolumeOf,
  lifecycleProblem,
  needsAttach,
  ownsFiles,
  publishContextOf,
  TOKENS_KEY,
  type CsiVolume,
} from './requests.ts';
import { SharedDevices, type SharedDevice } from './shared-devices.ts';
import { usageOf } from './usage.ts';
import { namesIn, readVolumeData, removeVolumeData, writeVolumeData, type VolumeData } from './vol-data.ts';

export type CsiPluginDeps = {
  readonly drivers: Pick<CsiDrivers, 'client' | 'refreshLimits'>;
  readonly objects: CsiObjects;
  readonly layout: CsiLayout;
  readonly mounter: Pick<Mounter, 'table' | 'unmount'>;
  readonly owner: Pick<GroupOwner, 'give'>;
  readonly podLayout: VolumeLayout;
  readonly map: CsiBlockDeps['map'];
  readonly events: CsiBlockDeps['events'];
  /** What the host's policy gives to files of containers; undefined without SELinux. */
  readonly fileContext?: () => Promise<string | undefined>;
};

export type CsiPluginOptions = {
  readonly nodeName: string;
  /** The feature gate CSIVolumeHealth. */
  readonly volumeHealth?: boolean;
  /** The feature gate SELinuxMount. */
  readonly selinuxAnyMode?: boolean;
};

const PRIVATE = 0o750;
/** The directory of a volume is called by a hash of its handle. */
const STAGE_DIR = /^[0-9a-f]{64}$/;
const STAGE = 'MountVolume.MountDevice';
const SET_UP = 'MountVolume.SetUp';

/** What one attempt to mount works with. */
type Attempt = {
  readonly request: VolumeRequest;
  readonly volume: CsiVolume;
  /** What the attacher left for the driver. */
  readonly attached: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
};

export class CsiPlugin implements VolumePlugin {
  readonly name = CSI_PLUGIN;
  readonly refreshes = false;
  readonly takesMountOptions = true;
  readonly makesDevices = true;
  readonly stepTimeoutMs = PATIENT_STEP_MS;
  readonly #deps: CsiPluginDeps;
  readonly #access: DriverAccess;
  readonly #options: CsiPluginOptions;
  readonly #devices = new SharedDevices();
  readonly #block: CsiBlock;
  #isLooking = false;

  constructor(deps: CsiPluginDeps, options: CsiPluginOptions) {
    this.#deps = deps;
    this.#options = options;
    const { drivers, objects, layout, podLayout, map, events } = deps;
    this.#access = { drivers, objects, nodeName: options.nodeName };
    this.#block = new CsiBlock({ access: this.#access, devices: this.#devices, layout, podLayout, map, events });
  }

  ready(signal: AbortSignal): Promise<void> {
    return this.#deps.objects.driversRead(signal);
  }

  attachedName({ persistent }: Pick<VolumeRequest, 'persistent'>): string | undefined {
    const source = persistent?.volume.spec.csi;
    if (source === undefined || !needsAttach(this.#deps.objects.driver(source.driver))) return undefined;
    return uniqueNameOf(source.driver, source.volumeHandle);
  }

  uniqueName({ persistent }: Pick<VolumeRequest, 'persistent'>): string | undefined {
    const source = persistent?.volume.spec.csi;
    return source === undefined ? undefined : uniqueNameOf(source.driver, source.volumeHandle);
  }

  /** Only for drivers that are asked again and again how many they can take. */
  async attachLimitReached({ persistent }: Pick<VolumeRequest, 'persistent'>, signal: AbortSignal): Promise<boolean> {
    const source = persistent?.volume.spec.csi;
    if (source === undefined) return false;
    return limitReached(
      this.#access,
      source.driver,
      source.volumeHandle,
      () => this.#deps.drivers.refreshLimits(source.driver, signal),
      signal,
    );
  }

  wantsEverySync({ volume, persistent }: Pick<VolumeRequest, 'volume' | 'persistent'>): boolean {
    const driver = persistent?.volume.spec.csi?.driver ?? volume.csi?.driver ?? '';
    return this.#deps.objects.driver(driver)?.spec.requiresRepublish === true;
  }

  metricName({ volume, persistent }: Pick<VolumeRequest, 'volume' | 'persistent'>): string | undefined {
    const driver = persistent?.volume.spec.csi?.driver ?? volume.csi?.driver;
    return driver === undefined ? undefined : metricNameOf(driver);
  }

  async setUp(request: VolumeRequest, signal: AbortSignal): Promise<MountedVolume> {
    const plain = csiVolumeOf(request);
    if (plain.isBlock) return this.#block.setUp(request, plain, signal);
    if (plain.isInline) return this.#publish({ request, volume: plain, attached: {}, signal });
    const volume = await this.#labelled(request, plain);
    const { driver, handle } = volume;
    const device = this.#devices.use(driver, handle, userOf(uidOf(request.pod), request.specName));
    request.progress('waiting for other work on the same volume');
    return device.turn.run(signal, async () => {
      const attached = await attachedFor(this.#access, volume, 'MountVolume.WaitForAttach', signal);
      const attempt = { request, volume, attached, signal };
      if (device.isStaged && device.selinuxLabel !== volume.selinuxLabel)
        await this.#freeOfLabel(device, request, signal);
      if (!device.isStaged) await this.#stage(attempt, device);
      return this.#publish(attempt);
    });
  }

  async tearDown(volume: VolumeToTearDown, signal: AbortSignal): Promise<void> {
    if (volume.volumeMode === 'Block') return this.#block.tearDown(volume, signal);
    const { uid, specName, releaseDevice = directly } = volume;
    const { layout } = this.#deps;
    const user = userOf(uid, specName);
    const dir = layout.volumeDir(uid, specName);
    const target = layout.publishPath(uid, specName);
    const data = await readVolumeData(dir);
    if (data !== undefined) {
      const unpublish = (): Promise<void> =>
        inStage('UnmountVolume.TearDown', () =>
          this.#deps.drivers.client(data.driverName).unpublish(data.volumeHandle, target, signal),
        );
      // A user it is in any case, also one that only the disk knows of. Drivers refuse a second call while one is under way.
      if (data.volumeLifecycleMode === 'Ephemeral') await unpublish();
      else await this.#devices.use(data.driverName, data.volumeHandle, user).turn.run(signal, unpublish);
    }
    await this.#removeDirs(dir, target, signal);
    const device = this.#devices.ofUser(user);
    if (device === undefined) return;
    const unstage = (stop: AbortSignal): Promise<void> => releaseDevice(() => this.#unstage(device, stop));
    await this.#devices.release(device, user, unstage, signal);
  }

  async expand(request: VolumeRequest, mounted: MountedVolume, bytes: number, signal: AbortSignal): Promise<void> {
    const volume = csiVolumeOf(request);
    const { driver, handle } = volume;
    const { layout, objects } = this.#deps;
    const device = this.#devices.use(driver, handle, userOf(uidOf(request.pod), request.specName));
    await device.turn.run(signal, () =>
      inStage('NodeExpandVolume', async () => {
        const client = this.#deps.drivers.client(driver);
        const can = await client.capabilities(signal);
        if (!can.has('EXPAND_VOLUME'))
          throw new KubeletError('unimplemented', `NodeExpand is not supported by the CSI driver ${driver}`);
        const reference = volume.source?.nodeExpandSecretRef;
        const call = {
          volumeId: handle,
          volumePath: volume.isBlock ? layout.blockPublishPath(request.specName, uidOf(request.pod)) : mounted.hostPath,
          capacityRange: { requiredBytes: bytes, limitBytes: 0 },
          stagingTargetPath: volume.isBlock
            ? layout.blockStaging(request.specName)
            : layout.globalMount(driver, handle),
          volumeCapability: capabilityOf(volume, can),
          secrets: await secretValues(objects, 'NodeExpandSecretRef', reference, signal),
        };
        await client.expand(call, volume.migrated, signal).catch((err: unknown) => {
          throw stageError('NodeExpandVolume', err, expandFailure(err));
        });
      }),
    );
  }

  async stats(
    { uid, specName, volumeMode }: VolumeOnDisk,
    _mounted: MountedVolume,
    signal: AbortSignal,
  ): Promise<VolumeUsage | undefined> {
    const { layout } = this.#deps;
    const isBlock = volumeMode === 'Block';
    const data = await readVolumeData(isBlock ? layout.blockDataDir(specName) : layout.volumeDir(uid, specName));
    if (data === undefined) return undefined;
    const client = this.#deps.drivers.client(data.driverName);
    const can = await client.capabilities(signal);
    if (!can.has('GET_VOLUME_STATS')) return undefined;
    const path = isBlock ? join(layout.globalMapDir(specName), uid) : layout.publishPath(uid, specName);
    const answer = await client.stats(data.volumeHandle, path, signal);
    const usage = usageOf(answer, this.#options.volumeHealth === true && can.has('VOLUME_CONDITION'));
    return { ...usage, source: data.driverName };
  }

  /** A run that was killed after the last pod let go of a volume left it staged. */
  async findLeftovers(signal: AbortSignal): Promise<void> {
    await forEach(
      [...(await this.#stageDirs()).map((dir) => () => this.#find(dir)), () => this.#block.findLeftovers(signal)],
      signal,
    );
  }

  async #find(dir: string): Promise<void> {
    const data = await readVolumeData(dir);
    if (data !== undefined) this.#devices.found(data.driverName, data.volumeHandle);
  }

  leftInUse(): string[] {
    return this.#devices.left().map(({ driver, handle }) => uniqueNameOf(driver, handle));
  }

  /** Drivers are waited for side by side; at the disk, which may hang, only one looks at a time. */
  async removeLeftovers(removed: () => void, signal: AbortSignal): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const work = await this.#leftovers(signal).finally(() => (this.#isLooking = false));
    await forEach(
      work.map((piece) => () => piece().then(removed)),
      signal,
    );
  }

  async #leftovers(signal: AbortSignal): Promise<readonly (() => Promise<void>)[]> {
    const staged = (await this.#stageDirs()).map((dir) =>
      afterReading(readVolumeData(dir), (data) => this.#removeLeftover(dir, data, signal)),
    );
    return (await Promise.all([Promise.all(staged), this.#block.unused(signal)])).flat();
  }

  async #stageDirs(): Promise<string[]> {
    const { root, devicesRoot } = this.#deps.layout;
    const drivers = (await namesIn(root)).map((name) => join(root, name)).filter((dir) => dir !== devicesRoot);
    return (await Promise.all(drivers.map(async (dir) => (await namesIn(dir)).map((name) => join(dir, name))))).flat();
  }

  async #removeLeftover(dir: string, data: VolumeData | undefined, signal: AbortSignal): Promise<void> {
    const unstage = (device: SharedDevice, stop: AbortSignal): Promise<void> => this.#unstage(device, stop);
    if (data !== undefined) await this.#devices.removeUnused(data.driverName, data.volumeHandle, unstage, signal);
    else if (STAGE_DIR.test(basename(dir))) await this.#removeUnstaged(dir, signal);
  }

  /** Directories of a volume that no driver was asked to stage. */
  async #removeUnstaged(dir: string, signal: AbortSignal): Promise<void> {
    const { layout } = this.#deps;
    const isUsed = this.#devices.all().some(({ driver, handle }) => layout.stageDir(driver, handle) === dir);
    if (!isUsed) await this.#removeDirs(dir, join(dir, 'globalmount'), signal);
  }

  async reconstruct(volume: VolumeOnDisk): Promise<ReconstructedVolume> {
    if (volume.volumeMode === 'Block') return this.#block.reconstruct(volume);
    const { uid, specName } = volume;
    const data = await readVolumeData(this.#deps.layout.volumeDir(uid, specName));
    if (data === undefined) return {};
    const metricName = metricNameOf(data.driverName);
    if (data.volumeLifecycleMode === 'Ephemeral') return { metricName };
    this.#devices.use(data.driverName, data.volumeHandle, userOf(uid, specName));
    const unique = uniqueNameOf(data.driverName, data.volumeHandle);
    return { attachedName: unique, uniqueName: unique, metricName };
  }

  /** With the label that its files are to have, where mounting can give it to them. */
  async #labelled({ pod, volume: { name } }: VolumeRequest, volume: CsiVolume): Promise<CsiVolume> {
    const supported = this.#deps.objects.driver(volume.driver)?.spec.seLinuxMount === true;
    if (!supported) return volume;
    const selinux = selinuxMountOf({
      pod,
      volume: name,
      accessModes: volume.source === undefined ? [] : volume.accessModes,
      supported,
      anyMode: this.#options.selinuxAnyMode === true,
      fileContext: await this.#deps.fileContext?.(),
    });
    if (selinux === undefined) return volume;
    if ('problem' in selinux) throw stageError(SET_UP, new KubeletError('invalid', selinux.problem));
    const mountOptions = [...volume.mountOptions, contextOption(selinux.label)];
    return { ...volume, mountOptions, selinuxLabel: selinux.label };
  }

  /** Takes down what was mounted with another label; while others use it, this pod does not count as a user. */
  async #freeOfLabel(device: SharedDevice, request: VolumeRequest, signal: AbortSignal): Promise<void> {
    const user = userOf(uidOf(request.pod), request.specName);
    if (device.users.size > 1) {
      if (!request.inUse) device.users.delete(user);
      throw stageError(STAGE, new KubeletError('conflict', otherLabel(uniqueNameOf(device.driver, device.handle))));
    }
    device.isStaged = false;
    await this.#unstage(device, signal);
  }

  #stage(attempt: Attempt, device: SharedDevice): Promise<void> {
    return inStage(STAGE, async () => {
      const { request, volume, attached, signal } = attempt;
      const { layout, objects } = this.#deps;
      const client = clientOf(
        this.#access,
        volume.driver,
        STAGE,
        'attacher.MountDevice failed to create newCsiDriverClient',
      );
      request.progress('asking the driver what it can do');
      const can = await client.capabilities(signal);
      const stages = can.has('STAGE_UNSTAGE_VOLUME');
      const secrets = stages
        ? await secretValues(objects, 'NodeStageSecretRef', volume.source?.nodeStageSecretRef, signal)
        : {};
      const dir = layout.stageDir(volume.driver, volume.handle);
      const target = layout.globalMount(volume.driver, volume.handle);
      await mkdir(target, { recursive: true, mode: PRIVATE });
      if (stages) {
        const label = volume.selinuxLabel === undefined ? {} : { seLinuxMountContext: volume.selinuxLabel };
        await writeVolumeData(dir, { driverName: volume.driver, volumeHandle: volume.handle, ...label });
        request.progress('waiting for the driver to stage it');
        const call = {
          volumeId: volume.handle,
          publishContext: { ...attached },
          stagingTargetPath: target,
          volumeCapability: capabilityOf(volume, can, request.pod.spec.securityContext?.fsGroup),
          secrets,
          volumeContext: { ...volume.attributes },
        };
        // After a restart another pod may be using what this one finds not staged.
        const inUse = request.inUse || device.users.size > 1;
        await this.#final(inUse, dir, target, () => client.stage(call, volume.migrated, signal), signal);
      }
      device.isStaged = true;
      device.selinuxLabel = volume.selinuxLabel;
    });
  }

  #publish(attempt: Attempt): Promise<MountedVolume> {
    return inStage(SET_UP, async () => {
      const { request, volume, signal } = attempt;
      const { layout, objects } = this.#deps;
      const { pod, specName } = request;
      const client = clientOf(this.#access, volume.driver, SET_UP, 'mounter.SetUpAt failed to get CSI client');
      const driver = objects.driver(volume.driver);
      const lifecycle = lifecycleProblem(volume, driver);
      if (lifecycle !== undefined) throw new KubeletError('invalid', lifecycle);
      const dir = layout.volumeDir(uidOf(pod), specName);
      const target = layout.publishPath(uidOf(pod), specName);
      await ensureDir(dirname(dir), PRIVATE);
      await ensureDir(dir, PRIVATE);
      const can = await client.capabilities(signal);
      const call = await this.#publishCall(attempt, can, target);
      const owns = ownsFiles(volume, pod, driver, can);
      if (typeof owns === 'object') throw new KubeletError('invalid', owns.problem);
      const volumeLifecycleMode = volume.isInline ? 'Ephemeral' : 'Persistent';
      await writeVolumeData(dir, { ...publishedData(this.#access, volume), volumeLifecycleMode });
      request.progress('waiting for the driver to publish it');
      await this.#final(request.inUse, dir, target, () => client.publish(call, volume.migrated, signal), signal);
      if (owns) await this.#giveToGroup(request, volume, target, signal);
      return {
        hostPath: target,
        readOnly: volume.readOnly,
        selinuxRelabel: relabelsFiles(volume, (await this.#deps.mounter.table(signal)).holding(target)?.options),
      };
    });
  }

  async #publishCall({ request, volume, attached, signal }: Attempt, can: NodeCapabilities, targetPath: string) {
    const { objects, layout } = this.#deps;
    const { pod } = request;
    const driver = objects.driver(volume.driver);
    const secrets = await publishSecrets(this.#access, volume, pod, signal);
    const volumeContext = publishContextOf(volume, pod, driver);
    const tokens = await tokensText(objects, pod, driver, signal);
    const inSecrets = driver?.spec.serviceAccountTokenInSecrets === true;
    if (tokens !== undefined) (inSecrets ? secrets : volumeContext)[TOKENS_KEY] = tokens;
    const staged = !volume.isInline && can.has('STAGE_UNSTAGE_VOLUME');
    return {
      volumeId: volume.handle,
      publishContext: { ...attached },
      stagingTargetPath: staged ? layout.globalMount(volume.driver, volume.handle) : '',
      targetPath,
      volumeCapability: capabilityOf(volume, can, pod.spec.securityContext?.fsGroup),
      readonly: volume.readOnly,
      secrets,
      volumeContext,
    };
  }

  /** After an error that leaves nothing behind, nothing is left of the attempt, unless containers may be using it. */
  async #final(
    inUse: boolean,
    dir: string,
    target: string,
    call: () => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await call();
    } catch (err) {
      if (isFinal(err) && !inUse) await this.#removeDirs(dir, target, signal).catch(() => undefined); // the call's error says more
      throw err;
    }
  }

  async #giveToGroup(request: VolumeRequest, volume: CsiVolume, path: string, signal: AbortSignal): Promise<void> {
    const changePolicy =
      request.pod.spec.securityContext?.fsGroupChangePolicy === 'OnRootMismatch' ? 'OnRootMismatch' : 'Always';
    try {
      await this.#deps.owner.give(request, path, { readOnly: false, changePolicy }, signal);
    } catch (err) {
      signal.throwIfAborted();
      throw new KubeletError('internal', `applyFSGroup failed for vol ${volume.handle}: ${messageOf(err)}`, {
        cause: err,
      });
    }
  }

  async #unstage({ driver, handle }: SharedDevice, signal: AbortSignal): Promise<void> {
    const { layout, mounter } = this.#deps;
    const dir = layout.stageDir(driver, handle);
    const target = layout.globalMount(driver, handle);
    const data = await readVolumeData(dir);
    if (data !== undefined) {
      const table = await mounter.table(signal);
      const staged = table.at(target);
      const held = table.entries.find(
        (entry) =>
          staged !== undefined &&
          entry.device === staged.device &&
          entry.root === staged.root &&
          entry.target.startsWith(`${layout.podsDir}/`),
      );
      if (held !== undefined) throw new KubeletError('conflict', `${target} is still mounted at ${held.target}`);
      await inStage('UnmountDevice', async () => {
        const client = this.#deps.drivers.client(driver);
        const can = await client.capabilities(signal);
        if (can.has('STAGE_UNSTAGE_VOLUME')) await client.unstage(handle, target, signal);
      });
    }
    await this.#removeDirs(dir, target, signal);
  }

  /** A mount that the driver left although it said it had not is ours to remove: the path is. */
  async #removeDirs(dir: string, target: string, signal: AbortSignal): Promise<void> {
    const { mounter } = this.#deps;
    if ((await mounter.table(signal)).at(target) !== undefined) await mounter.unmount(target, {}, signal);
    await removeDir(target);
    await removeVolumeData(dir);
    await removeDir(dir);
  }
}

/** Upstream leaves the colon out where trying again is of no use. */
const expandFailure = (err: unknown): string =>
  `Expander.NodeExpand failed to expand the volume ${isHopelessCode(isFault(err) ? err.detail['grpcCode'] : undefined) ? '' : ': '}`;

const otherLabel = (name: string): string =>
  `waiting for unmount of volume "${name}", because it is already mounted to a different pod with a different SELinux label`;
