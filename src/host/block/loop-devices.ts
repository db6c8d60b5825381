// Loop devices over files and other block devices. A block volume in use by a pod has one of its own: as long as it is
// there, the device under it cannot vanish silently. What is attached is read from sysfs, by the file's path.
import { readdir, readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import type { HostCommands } from '../mounts/commands.ts';

export type LoopDevicesOpts = { readonly sysDir?: string };

export class LoopDevices {
  readonly #commands: HostCommands;
  readonly #blockDir: string;

  constructor(deps: { commands: HostCommands }, opts: LoopDevicesOpts = {}) {
    this.#commands = deps.commands;
    this.#blockDir = join(opts.sysDir ?? '/sys', 'block');
  }

  /** The loop devices over `file`. The directory of `file` must be local; `file` itself is not touched. */
  async find(file: string): Promise<string[]> {
    const wanted = await realName(file);
    const names = (await readdir(this.#blockDir)).filter((name) => name.startsWith('loop'));
    const backing = await Promise.all(names.map((name) => backingFile(join(this.#blockDir, name))));
    return names.filter((_, i) => backing[i] === wanted).map((name) => `/dev/${name}`);
  }

  /** Gives `file` a loop device unless it has one, and returns it. */
  async attach(file: string, signal: AbortSignal): Promise<string> {
    const [existing] = await this.find(file);
    if (existing !== undefined) return existing;
    const { code, output } = await this.#commands.run('losetup', ['-f', file], signal);
    if (code !== 0) throw new KubeletError('unavailable', `losetup -f ${file} failed: exit status ${code}: ${output}`);
    const [made] = await this.find(file);
    if (made === undefined) throw new KubeletError('internal', `losetup -f ${file} left no loop device`);
    return made;
  }

  /** Releases every loop device over `file`. None is success. */
  async detach(file: string, signal: AbortSignal): Promise<void> {
    for (const device of await this.find(file)) {
      const { code, output } = await this.#commands.run('losetup', ['-d', device], signal);
      // Somebody else, or the kernel on a last close, may have released it meanwhile.
      if (code === 0 || !(await this.find(file)).includes(device)) continue;
      throw new KubeletError('conflict', `losetup -d ${device} failed: exit status ${code}: ${output}`);
    }
  }
}

/** As the kernel names an open file: with the directory's links followed. */
async function realName(file: string): Promise<string> {
  try {
    return join(await realpath(dirname(file)), basename(file));
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return file;
    throw err;
  }
}

async function backingFile(device: string): Promise<string | undefined> {
  try {
    return (await readFile(join(device, 'loop/backing_file'), 'utf8')).replace(/\n$/, '');
  } catch (err) {
    // Not attached, or released while we looked.
    if (['ENOENT', 'ENXIO', 'ENODEV'].includes(errnoOf(err) ?? '')) return undefined;
    throw err;
  }
}
