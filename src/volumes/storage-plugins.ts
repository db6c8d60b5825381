// The kinds of volumes that outlive pods and that the kubelet mounts itself, with the tools of the host they share.
import type { EventRecorder } from '../core/events.ts';
import { Disks } from '../host/block/disk.ts';
import { FibreChannel } from '../host/block/fibre-channel.ts';
import { Iscsi, type IscsiOpts } from '../host/block/iscsi.ts';
import { LoopDevices } from '../host/block/loop-devices.ts';
import { ScsiDisks, type ScsiDisksOpts } from '../host/block/scsi-disks.ts';
import { ChildMounts } from '../host/mounts/child-mounts.ts';
import { ChildCommands, patientCommands, type HostCommands } from '../host/mounts/commands.ts';
import type { HostFiles } from '../host/mounts/host-files.ts';
import type { Mounter } from '../host/mounts/mounter.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { DeviceMap } from './block/device-map.ts';
import { FilesystemStats } from './filesystem-stats.ts';
import { FlexVolumes, type FlexVolumesOpts } from './flex/flex-volumes.ts';
import type { GroupOwner } from './group-owner.ts';
import type { VolumeLayout } from './layout.ts';
import type { VolumePlugin } from './plugin.ts';
import { AttachedDiskPlugin } from './plugins/attached-disk.ts';
import { FibreChannelAttacher } from './plugins/fibre-channel.ts';
import { IscsiAttacher } from './plugins/iscsi.ts';
import { LocalPlugin } from './plugins/local.ts';
import { NfsPlugin } from './plugins/nfs.ts';
import type { ObjectSource } from './plugins/sources.ts';
import { PodBinds } from './pod-binds.ts';

export type StorageDeps = {
  readonly clock: Clock;
  readonly layout: VolumeLayout;
  readonly mounter: Mounter;
  readonly files: HostFiles;
  readonly owner: Pick<GroupOwner, 'give'>;
  readonly events: EventRecorder;
  readonly objects: Pick<ObjectSource, 'secret'>;
  readonly log: Logger;
  /** `--experimental-mounter-path`. */
  readonly mounterPath?: string;
  /** A stand-in for tests. */
  readonly commands?: HostCommands;
};

/** Where the kernel shows disks, and how long they are waited for; other than usual in tests only. */
export type StorageHost = ScsiDisksOpts & IscsiOpts;

/** A mount of a server that is slow to answer may take this long; one that fails is tried again. */
const MOUNT_MS = 110_000;

type StorageTools = {
  readonly commands: HostCommands;
  readonly mounting: HostCommands;
  readonly mounts: ChildMounts;
  readonly disks: Disks;
  readonly stats: FilesystemStats;
};

function storageTools({ clock, mounter, commands: given, mounterPath = '' }: StorageDeps): StorageTools {
  const limited = (timeoutMs: number): HostCommands => given ?? new ChildCommands({ clock }, { timeoutMs });
  const commands = limited(60_000);
  const mounting = limited(MOUNT_MS);
  return {
    commands,
    mounting,
    mounts: new ChildMounts({ commands: mounting, mounter }, { mounterPath }),
    disks: new Disks({ commands, patient: given ?? patientCommands }),
    stats: new FilesystemStats({ mounter, commands }),
  };
}

/** Volumes of drivers that the administrator installs. */
export function flexVolumes(deps: StorageDeps, opts: FlexVolumesOpts): FlexVolumes {
  const { mounts, disks, stats } = storageTools(deps);
  return new FlexVolumes({ ...deps, mounts, disks, stats }, opts);
}

/** By the field of a persistent volume's spec or of a pod's volume. */
export function storagePlugins(deps: StorageDeps, host: StorageHost = {}): Record<string, VolumePlugin> {
  const { clock, layout, mounter, files, owner, events } = deps;
  const { commands, mounting, mounts, disks, stats } = storageTools(deps);
  const deviceMap = new DeviceMap({ layout, mounter, loops: new LoopDevices({ commands }) });
  const binds = new PodBinds({ layout, mounter, mounts, owner, events });
  const attached = { layout, mounter, disks, deviceMap, binds, stats, owner, events, log: deps.log };
  const scsi = new ScsiDisks({ clock, commands }, host);
  const iscsi = new Iscsi({ scsi, commands: mounting }, host);
  const channel = new FibreChannel({ scsi, commands });
  return {
    local: new LocalPlugin({ layout, mounter, files, disks, deviceMap, binds, stats, events }),
    nfs: new NfsPlugin({ layout, mounter, mounts, stats }),
    iscsi: new AttachedDiskPlugin(new IscsiAttacher({ iscsi, objects: deps.objects }), attached),
    fc: new AttachedDiskPlugin(new FibreChannelAttacher(channel), attached),
  };
}
