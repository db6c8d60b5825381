// The machine's own filesystems with the traffic of their disks. What belongs to pods and containers is left out, and so
// is whatever may wait for a peer.
import type { ContainerStats } from '../cri/gen/cri.ts';
import type { MountEntry, MountTable } from '../host/mounts/mount-table.ts';
import { readMountTable } from '../host/mounts/mount-table.ts';
import { readDiskstats, type DiskCounters } from '../host/proc.ts';
import { errnoOf } from '../lib/errors.ts';
import type { MachineFilesystem } from './cadvisor-families.ts';
import type { FsCapacity } from './summary.ts';

const DISK_TYPES = new Set(['ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'zfs', 'f2fs']);

/** Memory of pods and containers, wherever runtime and kubelet keep their state. */
const OF_CONTAINERS = /\/(kubernetes\.io~[^/]+|sandboxes|userdata)\//;

/** One mount per device: for disks the device's name, for memory its mount point. */
function machineMounts(
  entries: readonly MountEntry[],
  notBelow: readonly string[],
): readonly { readonly device: string; readonly mount: MountEntry }[] {
  const found = new Map<string, MountEntry>();
  for (const mount of entries) {
    if (OF_CONTAINERS.test(mount.target) || notBelow.some((dir) => mount.target.startsWith(`${dir}/`))) continue;
    const device = DISK_TYPES.has(mount.fsType) ? mount.source : mount.fsType === 'tmpfs' ? mount.target : undefined;
    if (device !== undefined && !found.has(device)) found.set(device, mount);
  }
  return [...found].map(([device, mount]) => ({ device, mount }));
}

/** Writable layers by container id. */
export type Layers = ReadonlyMap<string, MachineFilesystem>;

export type Disks = {
  readonly filesystems: readonly MachineFilesystem[];
  /** `/dev/…` by `major:minor`. */
  readonly names: ReadonlyMap<string, string>;
  /** With runtimes of which cAdvisor shows them. */
  readonly layers?: Layers;
};

export async function readDisks(
  capacityOf: (path: string) => Promise<FsCapacity>,
  notBelow: readonly string[],
  containerStats?: () => Promise<readonly ContainerStats[]>,
): Promise<Disks> {
  const [table, disks, stats] = await Promise.all([
    readMountTable(),
    readDiskstats(),
    containerStats?.().catch(() => []), // a runtime that does not answer: without layers
  ]);
  const filesystems = await Promise.all(
    machineMounts(table.entries, notBelow).map(async ({ device, mount }): Promise<MachineFilesystem | undefined> => {
      const capacity = await capacityOf(mount.target).catch((err: unknown) => {
        // Unmounted meanwhile, hidden under another mount, or not ours to see.
        if (['ENOENT', 'EACCES', 'ENOTDIR'].includes(errnoOf(err) ?? '')) return undefined;
        throw err;
      });
      return capacity === undefined ? undefined : { device, capacity, disk: disks.get(mount.device) };
    }),
  );
  return {
    filesystems: filesystems.filter((fs) => fs !== undefined),
    names: deviceNames(disks),
    ...(stats === undefined ? {} : { layers: await readLayers(stats, capacityOf, table) }),
  };
}

/** cAdvisor measures the writable layers of CRI-O's containers, and of no other runtime's. */
export const showsLayers = (runtimeName: string): boolean => runtimeName === 'cri-o';

/** What the runtime says of writable layers, with the filesystems they are on. */
export async function readLayers(
  stats: readonly ContainerStats[],
  capacityOf: (path: string) => Promise<FsCapacity>,
  table: MountTable,
): Promise<Layers> {
  const capacities = new Map<string, Promise<FsCapacity | undefined>>();
  const found = new Map<string, MachineFilesystem>();
  for (const { attributes, writableLayer } of stats) {
    const mountpoint = writableLayer?.fsId?.mountpoint;
    const mount = mountpoint === undefined ? undefined : table.holding(mountpoint);
    if (attributes === undefined || mountpoint === undefined || mount === undefined) continue;
    // A filesystem the runtime names and we cannot see is left out.
    const asked = capacities.get(mountpoint) ?? capacityOf(mountpoint).catch(() => undefined);
    capacities.set(mountpoint, asked);
    const capacity = await asked;
    const device = DISK_TYPES.has(mount.fsType) ? mount.source : mount.target;
    const usedBytes = writableLayer?.usedBytes?.value ?? 0;
    if (capacity !== undefined) found.set(attributes.id, { device, capacity, disk: undefined, usedBytes });
  }
  return found;
}

const deviceNames = (disks: ReadonlyMap<string, DiskCounters>): ReadonlyMap<string, string> =>
  new Map([...disks].map(([number, { name }]) => [number, `/dev/${name}`]));
