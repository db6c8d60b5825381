// A block device handed to a pod: bound at `<global map>/<pod uid>`, kept from vanishing by a loop device over that bind,
// and linked from the pod's `volumeDevices`. The link comes first and goes last: by it a later run finds what is left of
// an attempt. The loop device is found by the path of the bind, which therefore stays until it is detached.
import { mkdir, open, readdir, readlink, rm, rmdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { EventRecorder } from '../../core/events.ts';
import type { Pod } from '../../core/pod.ts';
import { deviceNumber } from '../../host/block/device-facts.ts';
import type { LoopDevices } from '../../host/block/loop-devices.ts';
import type { Mounter } from '../../host/mounts/mounter.ts';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import { element, type VolumeLayout } from '../layout.ts';

/** Not in Node's constants: names a device node without opening the device. */
const O_PATH = 0o10000000;
const PRIVATE = 0o750;

export type DeviceMapDeps = {
  readonly layout: VolumeLayout;
  readonly mounter: Pick<Mounter, 'bindDescriptor' | 'unmount' | 'table'>;
  readonly loops: Pick<LoopDevices, 'attach' | 'detach'>;
};

export type DeviceMapPlace = {
  /** The directory with one bind per pod that uses the volume. */
  readonly globalMapDir: string;
  readonly uid: string;
  readonly plugin: string;
  readonly specName: string;
};

export class DeviceMap {
  readonly #deps: DeviceMapDeps;

  constructor(deps: DeviceMapDeps) {
    this.#deps = deps;
  }

  /** Maps the device for the pod and returns the path that containers are given. Maps again what points elsewhere. */
  async map(place: DeviceMapPlace, devicePath: string, signal: AbortSignal): Promise<string> {
    const number = await deviceNumber(devicePath);
    if (number === undefined) throw new KubeletError('invalid', `${devicePath} is not a block device`);
    const bind = bindOf(place);
    const link = await this.link(place, devicePath);
    await mkdir(place.globalMapDir, { recursive: true, mode: PRIVATE });
    await this.#bind(bind, devicePath, number, signal);
    await this.#deps.loops.attach(bind, signal);
    return link;
  }

  /** Notes that the pod is about to get the device, which need not be there yet. */
  async link({ uid, plugin, specName }: DeviceMapPlace, devicePath: string): Promise<string> {
    const { layout } = this.#deps;
    await mkdir(layout.pluginVolumeDevicesDir(uid, plugin), { recursive: true, mode: PRIVATE });
    const link = layout.deviceLink(uid, plugin, specName);
    await replaceLink(link, devicePath);
    return link;
  }

  /** Undoes `map`, or the part of it that happened; `takeBack` is for what is behind the device, which is needed so far. */
  async unmap(place: DeviceMapPlace, signal: AbortSignal, takeBack?: () => Promise<void>): Promise<void> {
    const { layout, loops } = this.#deps;
    const bind = bindOf(place);
    await loops.detach(bind, signal);
    await this.#release(bind, signal);
    await takeBack?.();
    await rm(layout.deviceLink(place.uid, place.plugin, place.specName), { force: true });
  }

  /** Pods that a volume's global map has a bind for. */
  async users(globalMapDir: string): Promise<string[]> {
    const names = await this.#names(globalMapDir);
    const numbers = await Promise.all(names.map((name) => deviceNumber(join(globalMapDir, name))));
    return names.filter((_, i) => numbers[i] !== undefined);
  }

  /** Of all binds, and of files without one: a power cut takes the mounts and may bring removed files back. */
  async #names(globalMapDir: string): Promise<string[]> {
    try {
      // Some kinds keep a file about the volume beside the binds.
      return (await readdir(globalMapDir)).filter((name) => !name.endsWith('.json'));
    } catch (err) {
      if (errnoOf(err) === 'ENOENT') return [];
      throw err;
    }
  }

  /** Removes the directory of a volume's binds. Its last user must be gone. */
  async removeGlobalMap(globalMapDir: string): Promise<void> {
    const users = await this.users(globalMapDir);
    if (users.length > 0)
      throw new KubeletError(
        'conflict',
        `the device "${globalMapDir}" is still referenced from other Pods [${users.join(' ')}]`,
      );
    for (const name of await this.#names(globalMapDir)) await rm(join(globalMapDir, name), { force: true });
    try {
      await rmdir(globalMapDir);
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT') throw err;
    }
  }

  async #bind(bind: string, devicePath: string, number: string, signal: AbortSignal): Promise<void> {
    const { mounter, loops } = this.#deps;
    const bound = await deviceNumber(bind);
    if (bound === number) return;
    if (bound !== undefined) {
      // The driver came back with another device.
      await loops.detach(bind, signal);
      await this.#release(bind, signal);
    }
    await (await open(bind, 'a', PRIVATE)).close();
    const device = await open(devicePath, O_PATH);
    try {
      await mounter.bindDescriptor(device.fd, bind, signal);
    } finally {
      await device.close();
    }
  }

  async #release(bind: string, signal: AbortSignal): Promise<void> {
    // A device node lives in memory, so that its unmount needs no disk.
    await this.#deps.mounter.unmount(bind, { inMemory: true }, signal);
    await rm(bind, { force: true });
  }
}

/** What upstream tells people when a pod got a device. */
export function tellMapped(
  deps: { events: EventRecorder; layout: VolumeLayout },
  pod: Pod,
  place: DeviceMapPlace,
): void {
  const mapped = `MapVolume.MapPodDevice succeeded for volume "${place.specName}"`;
  const links = deps.layout.pluginVolumeDevicesDir(place.uid, place.plugin);
  deps.events.pod(pod, 'Normal', 'SuccessfulMountVolume', `${mapped} globalMapPath "${place.globalMapDir}"`);
  deps.events.pod(pod, 'Normal', 'SuccessfulMountVolume', `${mapped} volumeMapPath "${links}"`);
}

const bindOf = ({ globalMapDir, uid }: DeviceMapPlace): string => join(globalMapDir, element(uid));

async function replaceLink(path: string, target: string): Promise<void> {
  try {
    if ((await readlink(path)) === target) return;
  } catch (err) {
    if (errnoOf(err) !== 'ENOENT' && errnoOf(err) !== 'EINVAL') throw err;
  }
  await rm(path, { force: true });
  await symlink(target, path);
}
