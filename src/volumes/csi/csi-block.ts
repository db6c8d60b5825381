// CSI volumes that containers get as a device: staged once, published as a device file per pod, mapped for the pod.
import { mkdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { EventRecorder } from '../../core/events.ts';
import { uidOf } from '../../core/pod.ts';
import { errnoOf } from '../../lib/errors.ts';
import type { DeviceMap, DeviceMapPlace } from '../block/device-map.ts';
import type { VolumeLayout } from '../layout.ts';
import {
  directly,
  type MountedVolume,
  type ReconstructedVolume,
  type VolumeOnDisk,
  type VolumeRequest,
  type VolumeToTearDown,
} from '../plugin.ts';
import { afterReading, forEach, inStage, isFinal } from './csi-errors.ts';
import { CSI_PLUGIN, metricNameOf, uniqueNameOf, type CsiLayout } from './csi-layout.ts';
import { secretValues } from './csi-objects.ts';
import { attachedFor, clientOf, publishedData, publishSecrets, userOf, type DriverAccess } from './driver-access.ts';
import { capabilityOf, publishContextOf, type CsiVolume } from './requests.ts';
import type { SharedDevice, SharedDevices } from './shared-devices.ts';
import { namesIn, readVolumeData, removeVolumeData, writeVolumeData, type VolumeData } from './vol-data.ts';

export type CsiBlockDeps = {
  readonly access: DriverAccess;
  readonly devices: SharedDevices;
  readonly layout: CsiLayout;
  readonly podLayout: VolumeLayout;
  readonly map: Pick<DeviceMap, 'map' | 'link' | 'unmap' | 'removeGlobalMap'>;
  readonly events: Pick<EventRecorder, 'pod'>;
};

type Attempt = {
  readonly request: VolumeRequest;
  readonly volume: CsiVolume;
  readonly attached: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
};

const PRIVATE = 0o750;
/** They stand among the directories of single volumes. */
const SHARED_DIRS: ReadonlySet<string> = new Set(['staging', 'publish']);
const STAGE = 'MapVolume.SetUpDevice';
const PUBLISH = 'MapVolume.MapPodDevice';

export class CsiBlock {
  readonly #deps: CsiBlockDeps;

  constructor(deps: CsiBlockDeps) {
    this.#deps = deps;
  }

  setUp(request: VolumeRequest, volume: CsiVolume, signal: AbortSignal): Promise<MountedVolume> {
    const { devices, access, layout, podLayout, map } = this.#deps;
    const uid = uidOf(request.pod);
    const device = devices.use(volume.driver, volume.handle, userOf(uid, request.specName));
    request.progress('waiting for other work on the same volume');
    return device.turn.run(signal, async () => {
      const attached = await attachedFor(access, volume, 'MapVolume.WaitForAttach', signal);
      const attempt = { request, volume, attached, signal };
      if (!device.isStaged) await this.#stage(attempt, device);
      const place = this.#placeOf(uid, request.specName);
      // Before the driver is asked: whatever it does, this pod is found to have the volume.
      await map.link(place, layout.blockPublishPath(request.specName, uid));
      const published = await this.#publish(attempt);
      const devicePath = await inStage('MapVolume.MapBlockVolume', () => map.map(place, published, signal));
      if (!request.inUse) {
        this.#tell(request, `globalMapPath "${layout.globalMapDir(request.specName)}"`);
        this.#tell(request, `volumeMapPath "${podLayout.pluginVolumeDevicesDir(uid, CSI_PLUGIN)}"`);
      }
      return { hostPath: '', devicePath, readOnly: volume.readOnly, selinuxRelabel: false };
    });
  }

  async tearDown({ uid, specName, releaseDevice = directly }: VolumeToTearDown, signal: AbortSignal): Promise<void> {
    const { devices, access, layout, map } = this.#deps;
    const user = userOf(uid, specName);
    const data = await readVolumeData(layout.blockDataDir(specName));
    const target = layout.blockPublishPath(specName, uid);
    await map.unmap(this.#placeOf(uid, specName), signal, async () => {
      if (data !== undefined) {
        const unpublish = (): Promise<void> =>
          inStage('UnmapVolume.UnmapPodDevice', () =>
            access.drivers.client(data.driverName).unpublish(data.volumeHandle, target, signal),
          );
        await devices.use(data.driverName, data.volumeHandle, user).turn.run(signal, unpublish);
      }
      await rm(target, { force: true });
    });
    const device = devices.ofUser(user);
    if (device === undefined) return;
    const unstage = (stop: AbortSignal): Promise<void> => releaseDevice(() => this.#unstage(device, specName, stop));
    await devices.release(device, user, unstage, signal);
  }

  async reconstruct({ uid, specName }: VolumeOnDisk): Promise<ReconstructedVolume> {
    const data = await readVolumeData(this.#deps.layout.blockDataDir(specName));
    if (data === undefined) return {};
    this.#deps.devices.use(data.driverName, data.volumeHandle, userOf(uid, specName));
    const unique = uniqueNameOf(data.driverName, data.volumeHandle);
    return { attachedName: unique, uniqueName: unique, metricName: metricNameOf(data.driverName) };
  }

  async findLeftovers(signal: AbortSignal): Promise<void> {
    const { layout, devices } = this.#deps;
    const find = async (specName: string): Promise<void> => {
      const data = await readVolumeData(layout.blockDataDir(specName));
      if (data !== undefined) devices.found(data.driverName, data.volumeHandle);
    };
    await forEach(
      (await this.#specNames()).map((specName) => () => find(specName)),
      signal,
    );
  }

  /** What unstages each volume that no pod has a link to. */
  async unused(signal: AbortSignal): Promise<readonly (() => Promise<void>)[]> {
    const { layout } = this.#deps;
    const work = (await this.#specNames()).map((specName) =>
      afterReading(readVolumeData(layout.blockDataDir(specName)), (data) =>
        this.#removeLeftover(specName, data, signal),
      ),
    );
    return Promise.all(work);
  }

  async #specNames(): Promise<string[]> {
    return (await namesIn(this.#deps.layout.devicesRoot)).filter((name) => !SHARED_DIRS.has(name));
  }

  async #removeLeftover(specName: string, data: VolumeData | undefined, signal: AbortSignal): Promise<void> {
    const { devices } = this.#deps;
    const unstage = (device: SharedDevice, stop: AbortSignal): Promise<void> => this.#unstage(device, specName, stop);
    if (data !== undefined) await devices.removeUnused(data.driverName, data.volumeHandle, unstage, signal);
    else if (!this.#isUsed(specName)) await this.#remove(specName);
  }

  #isUsed(specName: string): boolean {
    return this.#deps.devices.all().some(({ users }) => [...users].some((user) => user.endsWith(`/${specName}`)));
  }

  #placeOf(uid: string, specName: string): DeviceMapPlace {
    return { globalMapDir: this.#deps.layout.globalMapDir(specName), uid, plugin: CSI_PLUGIN, specName };
  }

  #tell({ pod, specName }: VolumeRequest, where: string): void {
    const message = `MapVolume.MapPodDevice succeeded for volume "${specName}" ${where}`;
    this.#deps.events.pod(pod, 'Normal', 'SuccessfulMountVolume', message);
  }

  #stage({ request, volume, attached, signal }: Attempt, device: SharedDevice): Promise<void> {
    return inStage(STAGE, async () => {
      const { access, layout } = this.#deps;
      const client = clientOf(access, volume.driver, STAGE, 'blockMapper.SetUpDevice failed to get CSI client');
      const can = await client.capabilities(signal);
      const data = layout.blockDataDir(volume.specName);
      const staging = layout.blockStaging(volume.specName);
      await mkdir(data, { recursive: true, mode: PRIVATE });
      await writeVolumeData(data, publishedData(access, volume));
      await mkdir(layout.blockPublishDir(volume.specName), { recursive: true, mode: PRIVATE });
      if (can.has('STAGE_UNSTAGE_VOLUME')) {
        await mkdir(staging, { recursive: true, mode: PRIVATE });
        const reference = volume.source?.nodeStageSecretRef;
        const call = {
          volumeId: volume.handle,
          publishContext: { ...attached },
          stagingTargetPath: staging,
          volumeCapability: capabilityOf(volume, can),
          secrets: await secretValues(access.objects, 'NodeStageSecretRef', reference, signal),
          volumeContext: { ...volume.attributes },
        };
        request.progress('waiting for the driver to stage it');
        await client.stage(call, volume.migrated, signal).catch(async (err: unknown) => {
          const isUnused = device.users.size === 1 && !request.inUse;
          // The call's error says more than that of the cleaning.
          if (isFinal(err) && isUnused) await this.#remove(volume.specName).catch(() => undefined);
          throw err;
        });
      }
      device.isStaged = true;
    });
  }

  #publish({ request, volume, attached, signal }: Attempt): Promise<string> {
    return inStage(PUBLISH, async () => {
      const { access, layout } = this.#deps;
      const { pod } = request;
      const client = clientOf(access, volume.driver, PUBLISH, 'blockMapper.MapPodDevice failed to get CSI client');
      const can = await client.capabilities(signal);
      const target = layout.blockPublishPath(volume.specName, uidOf(pod));
      await mkdir(layout.blockPublishDir(volume.specName), { recursive: true, mode: PRIVATE });
      request.progress('waiting for the driver to publish it');
      const call = {
        volumeId: volume.handle,
        publishContext: { ...attached },
        stagingTargetPath: layout.blockStaging(volume.specName),
        targetPath: target,
        volumeCapability: capabilityOf(volume, can),
        readonly: volume.readOnly,
        secrets: await publishSecrets(access, volume, pod, signal),
        volumeContext: publishContextOf(volume, pod, access.objects.driver(volume.driver)),
      };
      await client.publish(call, volume.migrated, signal);
      return target;
    });
  }

  async #unstage({ driver, handle }: SharedDevice, specName: string, signal: AbortSignal): Promise<void> {
    const { access, layout, map } = this.#deps;
    await map.removeGlobalMap(layout.globalMapDir(specName));
    if ((await readVolumeData(layout.blockDataDir(specName))) !== undefined) {
      await inStage('UnmapDevice', async () => {
        const client = access.drivers.client(driver);
        const can = await client.capabilities(signal);
        if (can.has('STAGE_UNSTAGE_VOLUME')) await client.unstage(handle, layout.blockStaging(specName), signal);
      });
    }
    await this.#remove(specName);
  }

  /** The file that says what there is goes last. */
  async #remove(specName: string): Promise<void> {
    const { layout } = this.#deps;
    // The driver made what is in it, and has taken it back.
    await rm(layout.blockStaging(specName), { recursive: true, force: true });
    const published = layout.blockPublishDir(specName);
    // Files that a power cut brought back. One that a device is still bound over cannot be removed.
    for (const name of await namesIn(published)) await rm(join(published, name), { force: true });
    await removeDir(published);
    await removeDir(layout.globalMapDir(specName));
    await removeVolumeData(layout.blockDataDir(specName));
    await removeDir(layout.blockDataDir(specName));
    await removeDir(layout.blockDir(specName));
  }
}

export async function removeDir(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (err) {
    if (errnoOf(err) !== 'ENOENT') throw err;
  }
}
