// The mount table as /proc/self/mountinfo tells it. Reading it touches no mounted filesystem, so it is safe to ask
// while one of them is dead.
import { readFile } from 'node:fs/promises';

export type MountEntry = {
  readonly id: number;
  readonly parentId: number;
  /** `major:minor` of the filesystem. */
  readonly device: string;
  /** The part of the filesystem that is mounted here: `/` unless it is a bind mount of something deeper. */
  readonly root: string;
  readonly target: string;
  /** Of the mount and of the filesystem, separated by commas. */
  readonly options: string;
  readonly fsType: string;
  readonly source: string;
  /** Mounts made here also appear in other namespaces of its peer group. */
  readonly shared: boolean;
};

/** Filesystems whose answers come from this kernel and its disks. Whatever is not listed may wait for a peer. */
const LOCAL_TYPES = new Set(
  (
    'ext2 ext3 ext4 xfs btrfs zfs f2fs jfs reiserfs bcachefs erofs squashfs iso9660 udf vfat exfat ntfs3 overlay aufs ' +
    'tmpfs ramfs rootfs devtmpfs hugetlbfs proc sysfs cgroup cgroup2 devpts mqueue bpf debugfs tracefs securityfs ' +
    'configfs pstore efivarfs fusectl binfmt_misc nsfs rpc_pipefs selinuxfs autofs'
  ).split(' '),
);

const isLocalType = (fsType: string): boolean => LOCAL_TYPES.has(fsType);

/** Whether a filesystem waits for disks of this machine and for nothing else: it has one, or its type is the kernel's own. */
export const isOfKernel = ({ device, fsType }: Pick<MountEntry, 'device' | 'fsType'>): boolean =>
  !device.startsWith('0:') || isLocalType(fsType);

const isAtOrBeneath = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`);

export class MountTable {
  readonly entries: readonly MountEntry[];
  readonly #top = new Map<string, MountEntry>();

  constructor(entries: readonly MountEntry[]) {
    this.entries = entries;
    for (const entry of entries) this.#top.set(entry.target, entry);
  }

  /** The mount one sees at exactly this path, if it is a mount point. */
  at(path: string): MountEntry | undefined {
    return this.#top.get(path);
  }

  /** How many mounts are stacked at exactly this path. */
  depthAt(path: string): number {
    return this.entries.filter((entry) => entry.target === path).length;
  }

  /** Mounts at `directory` or below it, the deepest and newest first: the order in which to unmount. */
  beneath(directory: string): MountEntry[] {
    return this.entries.filter((entry) => isAtOrBeneath(entry.target, directory)).reverse();
  }

  /** The mount that holds `path`. Symlinks in `path` are not looked at. */
  holding(path: string): MountEntry | undefined {
    let best: MountEntry | undefined;
    for (const entry of this.entries) {
      if (isAtOrBeneath(path, entry.target) && (best === undefined || entry.target.length >= best.target.length)) {
        best = entry;
      }
    }
    return best;
  }

  /** Whether an access at or beneath `path` can only meet filesystems of this kernel. */
  isLocal(path: string): boolean {
    const holding = this.holding(path);
    if (holding !== undefined && !isLocalType(holding.fsType)) return false;
    return this.beneath(path).every((entry) => isLocalType(entry.fsType));
  }

  /** Whether a filesystem of this kernel stays mounted when this mount goes: then it goes without a look at the disk. */
  isMountedElsewhere(mount: MountEntry): boolean {
    return (
      isLocalType(mount.fsType) && this.entries.some((other) => other.id !== mount.id && other.device === mount.device)
    );
  }

  /** Whether any filesystem of this machine may wait for a peer. A path with symlinks may then end up there. */
  get hasForeign(): boolean {
    return this.entries.some((entry) => !isLocalType(entry.fsType));
  }
}

const UNUSUAL = /[\\\u0080-\u00ff]/;

/** Octal escapes and the bytes of UTF-8 names; nearly no name has either. */
function unescapeOctal(text: string): string {
  if (!UNUSUAL.test(text)) return text;
  const bytes = text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** `text` is the file read as latin1, so that any byte of a path survives until it is unescaped. */
export function parseMountInfo(text: string): MountEntry[] {
  const entries: MountEntry[] = [];
  for (const line of text.split('\n')) {
    const fields = line.split(' ');
    const separator = fields.indexOf('-', 6);
    if (separator < 0) continue;
    entries.push({
      id: Number(fields[0]),
      parentId: Number(fields[1]),
      device: fields[2] ?? '',
      root: unescapeOctal(fields[3] ?? ''),
      target: unescapeOctal(fields[4] ?? ''),
      options: `${fields[5]},${fields[separator + 3]}`,
      fsType: fields[separator + 1] ?? '',
      source: unescapeOctal(fields[separator + 2] ?? ''),
      shared: fields.some((field, i) => i > 5 && i < separator && field.startsWith('shared:')),
    });
  }
  return entries;
}

export async function readMountTable(file = '/proc/self/mountinfo'): Promise<MountTable> {
  return new MountTable(parseMountInfo(await readFile(file, 'latin1')));
}

/** The table as it looks to somebody who names `real` by another path. */
export function seenFrom(table: MountTable, real: string, as: string): MountTable {
  if (real === as) return table;
  return new MountTable(
    table.entries.map((entry) =>
      isAtOrBeneath(entry.target, real) ? { ...entry, target: as + entry.target.slice(real.length) } : entry,
    ),
  );
}
