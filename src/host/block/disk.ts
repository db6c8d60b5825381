// A file system on a block device: found, made on an empty device, checked, mounted, grown. Every tool is a child process.
// Making, checking and mounting a file system (its journal is replayed) may take longer than one attempt: the next attempt
// joins the work under way. `idle` waits for it before a device is taken away.
import { abortable } from '../../lib/abort.ts';
import { isFault, KubeletError } from '../../lib/errors.ts';
import type { ChildResult } from '../mounts/child.ts';
import { mountFailure } from '../mounts/child-mounts.ts';
import type { HostCommands } from '../mounts/commands.ts';
import { deviceNumber } from './device-facts.ts';

const DEFAULT_TYPE = 'ext4';
const NOTHING_FOUND = 2;
const FSCK_UNCORRECTED = 4;

/** What blkid says is on a device. */
export type DiskContent =
  | { readonly is: 'empty' }
  | { readonly is: 'filesystem'; readonly type: string }
  /** A partition table: never to be written over. */
  | { readonly is: 'partitions' };

export type DiskMount = {
  readonly device: string;
  readonly target: string;
  readonly fsType: string;
  readonly options: readonly string[];
  readonly progress?: (doing: string) => void;
};

export type DiskDeps = {
  /** Ends commands that take too long. */
  readonly commands: HostCommands;
  /** Lets commands take as long as they need: for those that write to a disk. */
  readonly patient: HostCommands;
};

/** The file system of one volume is made or checked, and mounted. */
type Work = {
  readonly how: string;
  readonly target: string;
  /** Those that still wait for it. */
  callers: number;
  done: Promise<void>;
};

export class Disks {
  readonly #deps: DiskDeps;
  /** By device number: a name like `/dev/sdb` is given to another disk when this one is gone. */
  readonly #underWay = new Map<string, Work>();

  constructor(deps: DiskDeps) {
    this.#deps = deps;
  }

  async contentOf(device: string, signal: AbortSignal): Promise<DiskContent> {
    const args = ['-p', '-s', 'TYPE', '-s', 'PTTYPE', '-o', 'export', device];
    const { code, output } = await this.#deps.commands.run('blkid', args, signal);
    if (code === NOTHING_FOUND) return { is: 'empty' };
    if (code !== 0) throw failure('blkid', args, { code, output });
    return parseContent(output);
  }

  /**
   * Makes a file system on an empty device, checks an old one, and mounts it. A caller waits no longer than its signal says.
   * The command under way goes on, and the next caller joins it.
   */
  async formatAndMount(disk: DiskMount, signal: AbortSignal): Promise<void> {
    const fsType = disk.fsType === '' ? DEFAULT_TYPE : disk.fsType;
    // It becomes part of the name of a program.
    if (!/^\w[\w.-]*$/.test(fsType))
      throw new KubeletError('invalid', `${JSON.stringify(fsType)} is not a type of file system`);
    const args = ['-t', fsType, '-o', [...new Set([...disk.options, 'defaults'])].join(',')];
    const how = [...args, disk.target].join(' ');
    const device = (await deviceNumber(disk.device)) ?? disk.device;
    let work = this.#underWay.get(device);
    while (work !== undefined && work.how !== how) {
      disk.progress?.(`waiting for other work on ${disk.device} to end`);
      await abortable(signal, ended(work.done));
      work = this.#underWay.get(device);
    }
    if (work === undefined)
      work = this.#begin(device, how, disk, (own) => this.#prepareAndMount(disk, fsType, args, own));
    else disk.progress?.(`waiting for the file system on ${disk.device} to be made ready`);
    work.callers++;
    try {
      await abortable(signal, work.done);
    } finally {
      work.callers--;
    }
  }

  /** Resolves when no command works on the device of a volume, by the place it is mounted at. */
  async idle(target: string, signal: AbortSignal): Promise<void> {
    for (const work of this.#underWay.values()) if (work.target === target) await abortable(signal, ended(work.done));
  }

  /** Lets the file system on a device use all of a device that became bigger. */
  async grow(device: string, mountPath: string, signal: AbortSignal): Promise<void> {
    const content = await this.contentOf(device, signal);
    // Nothing on it: there is nothing to grow, and whoever formats it will use all of it.
    if (content.is === 'empty') return;
    const tool = content.is === 'filesystem' ? growTool(content.type, device, mountPath) : undefined;
    if (tool === undefined)
      throw new KubeletError(
        'invalid',
        `resize of format ${content.is === 'filesystem' ? content.type : 'partitions'} is not supported for device ${device} mounted at ${mountPath}`,
      );
    const result = await this.#deps.commands.run(tool[0], tool[1], signal);
    if (result.code !== 0) throw failure(tool[0], tool[1], result);
  }

  #begin(device: string, how: string, { target }: DiskMount, run: (work: Work) => Promise<void>): Work {
    const work: Work = { how, target, callers: 0, done: Promise.resolve() };
    this.#underWay.set(device, work);
    work.done = run(work).finally(() => this.#underWay.delete(device));
    work.done.catch(() => undefined); // Each caller that still waits gets the error.
    return work;
  }

  /** No command is ended halfway: it would begin again each time, and nobody knows when a killed one leaves the disk alone. */
  async #prepareAndMount(disk: DiskMount, fsType: string, options: readonly string[], work: Work): Promise<void> {
    const { device, target, progress } = disk;
    const content = await this.#prepare(disk, fsType, disk.options.includes('ro'));
    if (work.callers === 0) throw new KubeletError('cancelled', `${device} is not wanted at ${target} any more`);
    progress?.(`mounting ${device}`);
    const args = [...options, device, target];
    const result = await this.#deps.patient.run('mount', args, new AbortController().signal);
    if (result.code === 0) return;
    const mismatch = content.is === 'filesystem' && content.type !== fsType;
    throw mountFailure(args, result, { filesystemMismatch: mismatch });
  }

  /** What was on the device before. */
  async #prepare({ device, progress }: DiskMount, fsType: string, readOnly: boolean): Promise<DiskContent> {
    const { signal } = new AbortController();
    const content = await this.contentOf(device, signal);
    if (content.is === 'empty') {
      if (readOnly)
        throw new KubeletError(
          'invalid',
          `cannot mount unformatted disk ${device} as we are manipulating it in read-only mode`,
        );
      progress?.(`making a file system of type ${fsType} on ${device}`);
      await this.#format(device, fsType, signal);
    } else if (!readOnly && content.is === 'filesystem') {
      progress?.(`checking the file system on ${device}`);
      await this.#check(device, signal);
    }
    return content;
  }

  async #format(device: string, fsType: string, signal: AbortSignal): Promise<void> {
    const { code, output } = await this.#deps.patient.run(`mkfs.${fsType}`, formatArguments(device, fsType), signal);
    if (code === 0) return;
    throw new KubeletError(
      'unavailable',
      `format of disk ${device} failed: type:("${fsType}") errcode:(exit status ${code}) output:(${output})`,
    );
  }

  async #check(device: string, signal: AbortSignal): Promise<void> {
    let result: ChildResult;
    try {
      result = await this.#deps.patient.run('fsck', ['-a', device], signal);
    } catch (err) {
      // A machine without the tool mounts without a check.
      if (isFault(err, 'unavailable')) return;
      throw err;
    }
    if (result.code !== FSCK_UNCORRECTED) return;
    throw new KubeletError(
      'unavailable',
      `'fsck' found errors on device ${device} but could not correct them: ${result.output}`,
    );
  }
}

const ended = (work: Promise<void>): Promise<void> => work.catch(() => undefined);

function parseContent(output: string): DiskContent {
  const values = new Map(output.split('\n').map((line) => line.trim().split('=', 2) as [string, string]));
  if (values.has('PTTYPE')) return { is: 'partitions' };
  const type = values.get('TYPE');
  return type === undefined || type === '' ? { is: 'empty' } : { is: 'filesystem', type };
}

function formatArguments(device: string, fsType: string): string[] {
  if (fsType === 'ext3' || fsType === 'ext4') return ['-F', '-m0', device];
  return fsType === 'xfs' ? ['-f', device] : [device];
}

function growTool(fsType: string, device: string, mountPath: string): [string, string[]] | undefined {
  if (fsType === 'ext3' || fsType === 'ext4') return ['resize2fs', [device]];
  if (fsType === 'xfs') return ['xfs_growfs', ['-d', mountPath]];
  return fsType === 'btrfs' ? ['btrfs', ['filesystem', 'resize', 'max', mountPath]] : undefined;
}

const failure = (command: string, args: readonly string[], { code, output }: ChildResult): KubeletError =>
  new KubeletError('unavailable', `${command} ${args.join(' ')} failed: exit status ${code}: ${output}`);
