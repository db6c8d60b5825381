// The contract between the manager and a kind of volume. The manager decides when, a plugin knows how. Every verb may be
// called again after a crash at any point of it, must honour its signal, and must leave other volumes alone.
import type { Pod, Volume } from '../core/pod.ts';
import type { PersistentVolume, PersistentVolumeClaim, VolumeMode } from '../core/storage.ts';
import type { VolumeUsage } from './volume-stats.ts';

/** What a claim stands for, or a pod's own volume of a kind that was moved to CSI. */
export type PersistentSource = {
  /** The persistent volume; one of a kind that was moved to CSI is shown as the CSI volume it is treated as. */
  readonly volume: PersistentVolume;
  /** Absent for a pod's own volume. */
  readonly claim?: PersistentVolumeClaim;
  /** Of the volume's annotation or spec. */
  readonly mountOptions: readonly string[];
  /** Shown as `migrated` in metrics. */
  readonly migrated: boolean;
};

/** One volume of one pod, with what it stands for resolved. */
export type VolumeRequest = {
  readonly pod: Pod;
  readonly volume: Volume;
  /** The name of its directory: the volume's name, or the persistent volume's for a claim. */
  readonly specName: string;
  /** Present for claims. */
  readonly persistent?: PersistentSource;
  /** `Block`: containers get a device, and `setUp` answers with a `devicePath`. */
  readonly volumeMode: VolumeMode;
  /** The pod asked for the claim to be read-only. */
  readonly readOnly: boolean;
  /** Containers may be using the volume already (a refresh, or found after a restart): a failure must not take it away. */
  readonly inUse: boolean;
  /** Where a controller attached the volume, as far as it said. */
  readonly attachedPath: string;
  /** Tells people what is being waited for right now. */
  readonly progress: (doing: string) => void;
  /** Told when files were given to the group of the pod, or could not be. */
  readonly ownershipChanged?: (succeeded: boolean, seconds: number) => void;
};

export type MountedVolume = {
  /** What containers mount; empty for kinds that the runtime mounts by itself. */
  readonly hostPath: string;
  /** The device that containers are given instead, for a volume in block mode. */
  readonly devicePath?: string;
  readonly readOnly: boolean;
  /** Its files may be given the label of the pod: not where nothing may be written. */
  readonly selinuxRelabel: boolean;
  /** An extra group for every container of the pod. */
  readonly gid?: number;
  /** Wall time at which the content wants to be written again, whether or not anybody asks. */
  readonly refreshAtMs?: number;
  /** It is mounted by itself, and nothing else is on its filesystem: that knows how much it holds. */
  readonly hasOwnFilesystem?: boolean;
};

/** A volume of which only what is on disk is known. */
export type VolumeOnDisk = { readonly uid: string; readonly specName: string; readonly volumeMode: VolumeMode };

/** Of a pod that lets go of it. */
export type VolumeToTearDown = VolumeOnDisk & {
  /** Runs what is left to be done when no pod has the volume any more. */
  readonly releaseDevice?: (work: () => Promise<void>) => Promise<void>;
};

/**
 * For kinds that make and check file systems or give files to a group: nobody knows how long a big one takes, and one that is
 * cut off begins again. Whatever else such a step waits for has a limit of its own.
 */
export const PATIENT_STEP_MS = 24 * 3_600_000;

/** Where nobody asks when that begins and ends. */
export const directly = (work: () => Promise<void>): Promise<void> => work();

/** An API object whose change changes the content of a volume. Some kinds count as one object without a name. */
export type ObjectReference = {
  readonly kind: 'configMap' | 'secret' | 'trustBundles' | 'podCertificates';
  readonly name: string;
};

export interface VolumePlugin {
  /** `kubernetes.io/empty-dir`; with `/` as `~` the name of its directory in `volumes/`. */
  readonly name: string;
  /** Whether `setUp` on a mounted volume brings its content up to date. */
  readonly refreshes: boolean;
  /** Whether a persistent volume of this kind may have mount options. */
  readonly takesMountOptions?: boolean;
  /** Whether a persistent volume of this kind can be handed out as a device. */
  readonly makesDevices?: boolean;
  /** How long one attempt may take, where the manager's limit is too short. */
  readonly stepTimeoutMs?: number;
  /** Resolves once the plugin knows what it must to answer for a volume. */
  ready?(signal: AbortSignal): Promise<void>;
  /** Makes the volume usable. Called again to refresh, to repair and to adopt what an earlier run left. */
  setUp(request: VolumeRequest, signal: AbortSignal): Promise<MountedVolume>;
  /** Undoes `setUp`, or the part of it that happened. Nothing there is success. */
  tearDown(volume: VolumeToTearDown, signal: AbortSignal): Promise<void>;
  /** Makes a mounted volume use the space it was given. */
  readonly expand?:
    | ((request: VolumeRequest, mounted: MountedVolume, bytes: number, signal: AbortSignal) => Promise<void>)
    | undefined;
  /** Whether `setUp` wants to be called with every sync of the pod, as of now. */
  wantsEverySync?(request: Pick<VolumeRequest, 'volume' | 'persistent'>): boolean;
  /** How much a volume holds, by those who know. Undefined: nobody can say. Without it the volume is looked at. */
  stats?(volume: VolumeOnDisk, mounted: MountedVolume, signal: AbortSignal): Promise<VolumeUsage | undefined>;
  /** Learns what it must know of a volume that an earlier run left, before anything is set up or torn down. */
  reconstruct?(volume: VolumeOnDisk): Promise<ReconstructedVolume>;
  /** Looks for what earlier runs left, pods or not, before anything is set up or torn down. */
  findLeftovers?(signal: AbortSignal): Promise<void>;
  /** Names of attached volumes that earlier runs left and that are not taken down yet. */
  leftInUse?(): readonly string[];
  /**
   * Removes what earlier runs left that belongs to no pod. Asked once all pods are known, and again after a failure or
   * while an earlier call still waits for something. `removed` is called whenever `leftInUse` may have become shorter.
   */
  removeLeftovers?(removed: () => void, signal: AbortSignal): Promise<void>;
  /** The objects a volume is made of. */
  references?(volume: Volume): readonly ObjectReference[];
  /** For kinds that a controller attaches to the node: the name under which it does. Undefined: not this volume. */
  attachedName?(request: Pick<VolumeRequest, 'pod' | 'volume' | 'specName' | 'persistent'>): string | undefined;
  /** The node itself can attach such volumes where no controller does. */
  readonly attachesOnNode?: boolean;
  /** Whether a volume waits in vain to be attached: the node can take no more of them. Tells the cluster so. */
  attachLimitReached?(request: Pick<VolumeRequest, 'persistent'>, signal: AbortSignal): Promise<boolean>;
  /** What metrics call the kind of this volume, where that is not the plugin's name. */
  metricName?(request: Pick<VolumeRequest, 'volume' | 'persistent'>): string | undefined;
  /** For volumes that pods share: the same for two pods if and only if it is the same volume. */
  uniqueName?(request: Pick<VolumeRequest, 'pod' | 'volume' | 'specName' | 'persistent'>): string | undefined;
  /** Volumes found on disk that are not directories `volumes/<plugin>/<name>` of a pod. */
  readonly leavesNoDirectory?: boolean;
}

/** `attachedName` where a controller may have attached it. */
export type ReconstructedVolume = {
  readonly attachedName?: string;
  readonly uniqueName?: string;
  /** As `metricName` would say. */
  readonly metricName?: string;
};

export type ResolvedVolume = {
  readonly plugin: VolumePlugin;
  readonly specName: string;
  readonly volumeMode: VolumeMode;
  readonly readOnly: boolean;
  readonly persistent?: PersistentSource;
};

/** Finds the plugin of a volume. A claim is looked up here, so that the manager sees only what is behind it. */
export interface VolumeResolver {
  resolve(pod: Pod, volume: Volume, signal: AbortSignal): Promise<ResolvedVolume>;
  /** The plugin that owns a directory in a pod's `volumes/`. */
  byName(plugin: string): Promise<VolumePlugin | undefined>;
  all?(): Iterable<VolumePlugin>;
}

/** Every field of a volume but its name is a kind; exactly one is set. */
export const kindOf = (volume: Volume): string | undefined =>
  Object.keys(volume).find((key) => key !== 'name' && volume[key] !== undefined && volume[key] !== null);
