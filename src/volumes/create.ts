// Fits the parts of this folder together: one call for the composition root.
import type { EventRecorder } from '../core/events.ts';
import type { Node } from '../core/node.ts';
import { bytesOf } from '../core/quantity.ts';
import { LoopDevices } from '../host/block/loop-devices.ts';
import { ProjectQuotas } from '../host/quota/project-quotas.ts';
import { ChildCommands, type HostCommands } from '../host/mounts/commands.ts';
import { SafeHostFiles, type HostFiles } from '../host/mounts/host-files.ts';
import { HostMounter, type Mounter } from '../host/mounts/mounter.ts';
import { containerFileContext } from '../host/selinux.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { Attachments } from './attachments.ts';
import { AtomicWriter } from './atomic-writer.ts';
import type { Expander } from './claims/expander.ts';
import { DeviceMap } from './block/device-map.ts';
import { ClaimResolver, type ClaimObjects } from './claims/claim-resolver.ts';
import { CsiLayout } from './csi/csi-layout.ts';
import { CsiPlugin, type CsiPluginDeps } from './csi/csi-plugin.ts';
import { FileBudgets } from './file-budget.ts';
import { DriverWatch } from './flex/driver-watch.ts';
import type { FlexVolumesOpts } from './flex/flex-volumes.ts';
import { GroupOwner } from './group-owner.ts';
import { migratedPersistentVolume } from './in-tree-migration.ts';
import { VolumeLayout } from './layout.ts';
import { VolumeManager, type VolumeManagerOpts } from './manager.ts';
import type { VolumeMetrics } from './metrics.ts';
import type { PersistentVolumeEvents } from './mount-messages.ts';
import type { VolumePlugin } from './plugin.ts';
import { PluginSet } from './plugin-set.ts';
import { ConfigMapContent } from './plugins/config-map.ts';
import { DownwardApiContent } from './plugins/downward-api.ts';
import { EmptyDirBacking } from './plugins/empty-dir-backing.ts';
import { EmptyDirPlugin } from './plugins/empty-dir.ts';
import { HostPathPlugin } from './plugins/host-path.ts';
import { ImagePlugin } from './plugins/image.ts';
import { ProjectedContent } from './plugins/projected.ts';
import { SecretContent } from './plugins/secret.ts';
import type {
  ObjectSource,
  PodCertificateSource,
  PodFactSource,
  TokenSource,
  TrustBundleSource,
} from './plugins/sources.ts';
import { WrittenVolumePlugin, type ContentSource } from './plugins/written-volume.ts';
import { PodDirs } from './pod-dirs.ts';
import { flexVolumes, storagePlugins, type StorageDeps as StoragePartsDeps } from './storage-plugins.ts';
import { SubPaths, type SubPathOpts } from './subpath.ts';

/** What persistent volumes need; absent without an API server. */
export type StorageDeps = {
  readonly nodeName: string;
  readonly claims: ClaimObjects;
  readonly attachments: Attachments;
  readonly node: () => Node | undefined;
  readonly onVolumesInUse: () => void;
  /** `enableControllerAttachDetach`; true unless it says otherwise. */
  readonly controllerAttaches?: boolean;
  readonly volumeEvents?: PersistentVolumeEvents;
  readonly expander?: Pick<Expander, 'expand' | 'forget'>;
  readonly csi: Pick<CsiPluginDeps, 'drivers' | 'objects'> & {
    readonly gates?: { enabled(name: 'CSIVolumeHealth' | 'SELinuxMount'): boolean };
    /** Stand-in for tests. */
    readonly fileContext?: CsiPluginDeps['fileContext'];
  };
};

type AttachedParts = Omit<StorageDeps, 'nodeName' | 'claims' | 'csi'>;

export type VolumesDeps = {
  readonly storage?: StorageDeps;
  readonly objects: ObjectSource;
  readonly facts: PodFactSource;
  readonly tokens?: TokenSource;
  readonly trustBundles?: TrustBundleSource;
  readonly podCertificates?: PodCertificateSource;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: VolumeMetrics;
  /** Stand-ins for tests. */
  readonly mounter?: Mounter;
  readonly hostFiles?: HostFiles;
  readonly commands?: HostCommands;
  readonly quotas?: ProjectQuotas;
};

export type VolumesOpts = VolumeManagerOpts & {
  readonly rootDir: string;
  readonly subPath?: SubPathOpts;
  /** `--experimental-mounter-path`. */
  readonly mounterPath?: string;
  /** Measure emptyDir volumes by project quotas where possible. */
  readonly quotaMonitoring?: boolean;
  /** FlexVolumes; there are none without it. */
  readonly flex?: FlexVolumesOpts;
  /** How long a host path on a filesystem that may be dead gets to answer. */
  readonly hostPathTimeoutMs?: number;
};

export type Volumes = {
  readonly manager: VolumeManager;
  readonly podDirs: PodDirs;
  readonly layout: VolumeLayout;
  readonly mounter: Mounter;
  /** Long-lived parts, the manager first. */
  readonly parts: readonly Runnable[];
};

export function createVolumes(deps: VolumesDeps, opts: VolumesOpts): Volumes {
  const { clock, events } = deps;
  const log = deps.log.child({ component: 'volumes' });
  const layout = new VolumeLayout(opts.rootDir);
  const mounter = deps.mounter ?? new HostMounter({ clock }, { rootDir: opts.rootDir });
  const podDirs = new PodDirs(layout, mounter);
  const timeoutMs = opts.hostPathTimeoutMs ?? 30_000;
  const hostFiles = deps.hostFiles ?? new SafeHostFiles({ clock, mounter }, { timeoutMs });
  const quotas = deps.quotas ?? (opts.quotaMonitoring === true ? new ProjectQuotas({ clock, log }) : undefined);
  const measuring = quotas === undefined ? {} : { quotas };
  const owner = new GroupOwner({ clock, events, mounter, log: deps.log });
  const storageParts: StoragePartsDeps = {
    clock,
    layout,
    mounter,
    files: hostFiles,
    owner,
    events,
    objects: deps.objects,
    log,
    mounterPath: opts.mounterPath ?? '',
    ...(deps.commands === undefined ? {} : { commands: deps.commands }),
  };
  const plugins = pluginsOf({ ...deps, ...measuring }, storageParts);
  const flex = opts.flex === undefined ? undefined : flexVolumes(storageParts, opts.flex);
  const { storage } = deps;
  const abilities = { podCertificates: deps.podCertificates !== undefined, claims: storage !== undefined };
  const claims =
    storage === undefined
      ? undefined
      : new ClaimResolver({
          objects: storage.claims,
          pluginOf: (field, source, specName) => (field === 'flexVolume' ? flex?.of(source, specName) : plugins[field]),
          migrate: migratedPersistentVolume,
        });
  const resolver = new PluginSet(plugins, abilities, { claims, flex });
  const subPaths = new SubPaths({ layout, mounter, clock }, opts.subPath);
  const metrics = deps.metrics === undefined ? {} : { metrics: deps.metrics };
  const attached = storage === undefined ? {} : attachedParts(storage);
  const parts = {
    resolver,
    layout,
    podDirs,
    subPaths,
    mounter,
    events,
    clock,
    log,
    ...metrics,
    ...attached,
    ...measuring,
  };
  const manager = new VolumeManager(parts, opts);
  const watch =
    opts.flex === undefined
      ? []
      : [new DriverWatch({ clock, log, onChange: (names) => names.forEach((name) => manager.retry(name)) }, opts.flex)];
  return { manager, podDirs, layout, mounter, parts: [manager, ...watch] };
}

const attachedParts = ({ nodeName: _name, claims: _claims, csi: _csi, ...parts }: StorageDeps): AttachedParts => parts;

function pluginsOf(deps: VolumesDeps, parts: StoragePartsDeps): Record<string, VolumePlugin> {
  const { clock, objects, facts, tokens, trustBundles, podCertificates, quotas } = deps;
  const { layout, mounter, owner, files } = parts;
  const backing = new EmptyDirBacking(layout, mounter);
  const writer = new AtomicWriter(clock);
  const allocatableMemory = (): number => bytesOf(facts.allocatable()['memory']);
  const budgets = new FileBudgets();
  const written = (source: ContentSource): VolumePlugin =>
    new WrittenVolumePlugin(source, { backing, writer, budgets, owner, allocatableMemory });
  return {
    emptyDir: new EmptyDirPlugin({ backing, owner, allocatableMemory, ...(quotas === undefined ? {} : { quotas }) }),
    hostPath: new HostPathPlugin(files),
    configMap: written(new ConfigMapContent(objects)),
    secret: written(new SecretContent(objects)),
    downwardAPI: written(new DownwardApiContent(facts)),
    projected: written(
      new ProjectedContent({
        objects,
        facts,
        ...(tokens === undefined ? {} : { tokens }),
        ...(trustBundles === undefined ? {} : { trustBundles }),
        ...(podCertificates === undefined ? {} : { podCertificates }),
      }),
    ),
    image: new ImagePlugin(),
    ...(deps.storage === undefined ? {} : { csi: csiPlugin(deps.storage, deps, layout, mounter, owner) }),
    ...storagePlugins(parts),
  };
}

const csiPlugin = (
  { csi, nodeName }: StorageDeps,
  { clock, events }: VolumesDeps,
  layout: VolumeLayout,
  mounter: Mounter,
  owner: StoragePartsDeps['owner'],
): CsiPlugin => {
  const loops = new LoopDevices({ commands: new ChildCommands({ clock }) });
  const map = new DeviceMap({ layout, mounter, loops });
  const parts = { layout: new CsiLayout(layout), podLayout: layout, mounter, owner, map, events };
  const { gates, fileContext = () => containerFileContext(), ...access } = csi;
  const volumeHealth = gates?.enabled('CSIVolumeHealth') === true;
  const selinuxAnyMode = gates?.enabled('SELinuxMount') === true;
  return new CsiPlugin({ ...access, ...parts, fileContext }, { nodeName, volumeHealth, selinuxAnyMode });
};
