// Disks behind a fibre channel: found by the name of their port and their number there, or by their own name.
import { KubeletError } from '../../lib/errors.ts';
import type { HostCommands } from '../mounts/commands.ts';
import type { ScsiDisks } from './scsi-disks.ts';

/** Either world wide names of ports with a number, or identifiers of the disk itself. */
export type FcTarget = { readonly wwns: readonly string[]; readonly lun: number; readonly wwids: readonly string[] };

export type FibreChannelDeps = { readonly scsi: ScsiDisks; readonly commands: HostCommands };

export class FibreChannel {
  readonly #deps: FibreChannelDeps;

  constructor(deps: FibreChannelDeps) {
    this.#deps = deps;
  }

  /** The device of a target, the multipath device if there is one. Looks for new disks once if it is not there. */
  async attach(target: FcTarget, signal: AbortSignal): Promise<string> {
    const known = await this.#find(target);
    if (known?.multipath !== undefined) return known.multipath;
    for (const host of await this.#deps.scsi.hosts()) await this.#deps.scsi.scan(host, '- - -', signal);
    const found = await this.#find(target);
    const device = found?.multipath ?? found?.disk;
    if (device === undefined) throw new KubeletError('unavailable', 'no fc disk found');
    return device;
  }

  /** Takes every path to the target away. By its name, never by one a disk had before: names of disks are given anew. */
  async detach(target: FcTarget, signal: AbortSignal): Promise<void> {
    const { scsi, commands } = this.#deps;
    const disks = new Set<string>();
    const multipaths = new Set<string>();
    for (const disk of await this.#disks(target)) {
      const multipath = disk.startsWith('dm-') ? scsi.deviceOf(disk) : await scsi.multipathOver(disk);
      if (multipath !== undefined) multipaths.add(multipath);
      for (const one of await scsi.disksUnder(multipath ?? disk)) disks.add(one);
    }
    for (const multipath of multipaths) await scsi.flushMultipath(multipath, signal);
    for (const disk of disks) {
      const path = scsi.deviceOf(disk);
      const { code, output } = await commands.run('blockdev', ['--flushbufs', path], signal);
      if (code !== 0) throw new KubeletError('unavailable', `blockdev --flushbufs ${path} failed: ${output}`);
      await scsi.remove(disk, signal);
    }
  }

  /** The disks, or multipath devices, that udev has links to under the target's names. */
  async #disks({ wwns, lun, wwids }: FcTarget): Promise<string[]> {
    const { scsi } = this.#deps;
    const byPort = (name: string): boolean =>
      wwns.some((wwn) => new RegExp(`^(pci-.*-fc|fc)-0x${escaped(wwn)}-lun-${lun}$`).test(name));
    const byId = (name: string): boolean => wwids.some((wwid) => name === `scsi-${wwid.replaceAll(' ', '_')}`);
    const links = wwns.length > 0 ? await scsi.links('by-path', byPort) : await scsi.links('by-id', byId);
    const disks = await Promise.all(links.map((link) => scsi.diskOf(link)));
    return disks.filter((disk) => disk !== undefined);
  }

  async #find(target: FcTarget): Promise<{ disk: string; multipath: string | undefined } | undefined> {
    const { scsi } = this.#deps;
    let first: string | undefined;
    for (const disk of await this.#disks(target)) {
      const multipath = disk.startsWith('dm-') ? scsi.deviceOf(disk) : await scsi.multipathOver(disk);
      if (multipath !== undefined) return { disk: scsi.deviceOf(disk), multipath };
      first ??= scsi.deviceOf(disk);
    }
    return first === undefined ? undefined : { disk: first, multipath: undefined };
  }
}

const escaped = (text: string): string => text.replace(/[^\w]/g, '\\$&');
