// The contract between the manager and a kind of volume. The manager decides when, a plugin knows how. Every verb may be
// called again after a crash at any point of it, must honour its signal, and must leave other volumes alone.
import type { Pod, Volume } from '../core/pod.ts';

/** One volume of one pod, with what it stands for resolved. */
export type VolumeRequest = {
  readonly pod: Pod;
  readonly volume: Volume;
  /** The name of its directory: the volume's name, or the persistent volume's for a claim. */
  readonly specName: string;
  /** Tells people what is being waited for right now. */
  readonly progress: (doing: string) => void;
};

export type MountedVolume = {
  /** What containers mount; empty for kinds that the runtime mounts by itself. */
  readonly hostPath: string;
  readonly readOnly: boolean;
  readonly selinuxRelabel: boolean;
  /** An extra group for every container of the pod. */
  readonly gid?: number;
  /** Wall time at which the content wants to be written again, whether or not anybody asks. */
  readonly refreshAtMs?: number;
};

/** A volume of which only what is on disk is known. */
export type VolumeOnDisk = { readonly uid: string; readonly specName: string };

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
  /** Makes the volume usable. Called again to refresh, to repair and to adopt what an earlier run left. */
  setUp(request: VolumeRequest, signal: AbortSignal): Promise<MountedVolume>;
  /** Undoes `setUp`, or the part of it that happened. Nothing there is success. */
  tearDown(volume: VolumeOnDisk, signal: AbortSignal): Promise<void>;
  /** The objects a volume is made of. */
  references?(volume: Volume): readonly ObjectReference[];
  /** For kinds that a controller attaches to the node: the name under which it does. */
  attachedName?(request: Pick<VolumeRequest, 'pod' | 'volume' | 'specName'>): string;
  /** Volumes found on disk that are not directories `volumes/<plugin>/<name>` of a pod. */
  readonly leavesNoDirectory?: boolean;
}

export type ResolvedVolume = { readonly plugin: VolumePlugin; readonly specName: string };

/** Finds the plugin of a volume. A claim is looked up here, so that the manager sees only what is behind it. */
export interface VolumeResolver {
  resolve(pod: Pod, volume: Volume, signal: AbortSignal): Promise<ResolvedVolume>;
  /** The plugin that owns a directory in a pod's `volumes/`. */
  byName(plugin: string): VolumePlugin | undefined;
}

/** Every field of a volume but its name is a kind; exactly one is set. */
export const kindOf = (volume: Volume): string | undefined =>
  Object.keys(volume).find((key) => key !== 'name' && volume[key] !== undefined && volume[key] !== null);
