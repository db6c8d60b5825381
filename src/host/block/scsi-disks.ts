// SCSI disks as the kernel shows them in sysfs and udev in /dev: which disk a link leads to, which multipath device is over
// it, how it is looked for and removed. Directories are parameters, so that tests can show a host of their own.
import { readdir, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import type { HostCommands } from '../mounts/commands.ts';
import { isDeviceHeld } from './held-device.ts';

export type ScsiDisksOpts = { readonly sysDir?: string; readonly devDir?: string };

const POLL_MS = 100;

export class ScsiDisks {
  readonly #clock: Clock;
  readonly #commands: HostCommands;
  readonly #sys: string;
  readonly #dev: string;

  constructor(deps: { clock: Clock; commands: HostCommands }, opts: ScsiDisksOpts = {}) {
    this.#clock = deps.clock;
    this.#commands = deps.commands;
    this.#sys = opts.sysDir ?? '/sys';
    this.#dev = opts.devDir ?? '/dev';
  }

  /** Full paths of the links in `/dev/disk/<by>` whose name fits. */
  async links(by: 'by-path' | 'by-id', fits: (name: string) => boolean): Promise<string[]> {
    const dir = join(this.#dev, 'disk', by);
    return (await namesIn(dir)).filter(fits).map((name) => join(dir, name));
  }

  /** The same, waited for: udev makes the links some time after the disk appeared and tells nobody. */
  async waitForLink(
    fits: (name: string) => boolean,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const deadline = this.#clock.monotonic() + timeoutMs;
    for (;;) {
      const [link] = await this.links('by-path', fits);
      if (link !== undefined || this.#clock.monotonic() >= deadline) return link;
      await this.#clock.sleep(POLL_MS, signal);
      signal.throwIfAborted();
    }
  }

  /** `sdb`, for a link in `/dev/disk`; undefined if it is gone. */
  async diskOf(link: string): Promise<string | undefined> {
    try {
      return basename(await readlink(link));
    } catch (err) {
      if (errnoOf(err) === 'ENOENT') return undefined;
      throw err;
    }
  }

  /** `/dev/sdb` */
  deviceOf(disk: string): string {
    return join(this.#dev, disk);
  }

  /** `/dev/dm-3`, if a multipath device is over this disk. */
  async multipathOver(disk: string): Promise<string | undefined> {
    for (const name of (await namesIn(join(this.#sys, 'block'))).filter((device) => device.startsWith('dm-'))) {
      const slaves = await namesIn(join(this.#sys, 'block', name, 'slaves'));
      if (slaves.includes(disk)) return this.deviceOf(name);
    }
    return undefined;
  }

  async waitForMultipath(disk: string, timeoutMs: number, signal: AbortSignal): Promise<string | undefined> {
    const deadline = this.#clock.monotonic() + timeoutMs;
    for (;;) {
      const device = await this.multipathOver(disk);
      if (device !== undefined || this.#clock.monotonic() >= deadline) return device;
      await this.#clock.sleep(POLL_MS, signal);
      signal.throwIfAborted();
    }
  }

  /** `dm-3` or the disk itself: the disks under it. */
  async disksUnder(device: string): Promise<string[]> {
    const name = basename(device);
    return name.startsWith('dm-') ? namesIn(join(this.#sys, 'block', name, 'slaves')) : [name];
  }

  async hosts(): Promise<string[]> {
    return namesIn(join(this.#sys, 'class/scsi_host'));
  }

  /** Asks a host to look for disks: `- - -`, or `0 0 <lun>`. */
  scan(host: string, what: string, signal: AbortSignal): Promise<void> {
    return this.#write(join(this.#sys, 'class/scsi_host', host, 'scan'), what, signal);
  }

  /** Takes a disk away from the kernel. One that is gone is success; one that something holds is a `conflict`. */
  async remove(disk: string, signal: AbortSignal): Promise<void> {
    const file = join(this.#sys, 'block', disk, 'device/delete');
    if ((await namesIn(join(this.#sys, 'block', disk, 'device'))).length === 0) return;
    if (await isDeviceHeld(this.#commands, this.deviceOf(disk), signal))
      throw new KubeletError(
        'conflict',
        `${this.deviceOf(disk)} is not removed: a file system on it is not written out yet, or a program holds it`,
      );
    await this.#write(file, '1', signal);
  }

  async flushMultipath(device: string, signal: AbortSignal): Promise<void> {
    const { code, output } = await this.#commands.run('multipath', ['-f', basename(device)], signal);
    if (code !== 0) throw new KubeletError('unavailable', `failed to flush multipath device ${device}: ${output}`);
  }

  /** By a child: the kernel answers when the hosts have looked, which may take as long as their time-outs. */
  async #write(file: string, text: string, signal: AbortSignal): Promise<void> {
    const { code, output } = await this.#commands.run('sh', ['-c', 'printf %s "$1" > "$2"', 'sh', text, file], signal);
    if (code !== 0) throw new KubeletError('unavailable', `write of ${text} to ${file} failed: ${output}`);
  }
}

async function namesIn(dir: string): Promise<string[]> {
  try {
    return (await readdir(dir)).sort();
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return [];
    throw err;
  }
}
