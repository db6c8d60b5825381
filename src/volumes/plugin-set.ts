// The kinds of volumes this kubelet can mount. A pod that asks for another one is refused by name, at once.
import type { Pod, Volume } from '../core/pod.ts';
import { namespaceOf } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import { claimOf } from './claims/claim-checks.ts';
import type { ClaimResolver } from './claims/claim-resolver.ts';
import { MIGRATED_KINDS, migratedPodVolume } from './in-tree-migration.ts';
import { kindOf, type ResolvedVolume, type VolumePlugin, type VolumeResolver } from './plugin.ts';

/** The fields of a pod's volume that have a plugin. */
const SUPPORTED_KINDS: ReadonlySet<string> = new Set([
  'emptyDir',
  'hostPath',
  'configMap',
  'secret',
  'downwardAPI',
  'projected',
  'image',
  'nfs',
  'iscsi',
  'fc',
  'flexVolume',
]);
/** These need an API server. */
const STORAGE_KINDS: ReadonlySet<string> = new Set(['persistentVolumeClaim', 'ephemeral', 'csi', ...MIGRATED_KINDS]);

export type VolumeAbilities = {
  readonly podCertificates: boolean;
  /** Claims and CSI volumes. */
  readonly claims: boolean;
};

/** Why a volume cannot be mounted by this kubelet at all, or undefined if it can. */
function unsupportedVolume(volume: Volume, can: VolumeAbilities): string | undefined {
  const kind = kindOf(volume);
  if (kind === undefined) return `volume "${volume.name}" names no kind of volume`;
  if (STORAGE_KINDS.has(kind) && can.claims) return undefined;
  if (!SUPPORTED_KINDS.has(kind))
    return `volume "${volume.name}" is of kind ${kind}, which this kubelet does not support`;
  if (can.podCertificates) return undefined;
  if (volume.projected?.sources?.some((source) => source.podCertificate !== undefined) === true)
    return `volume "${volume.name}" projects a podCertificate, which needs the feature gate PodCertificateRequest and an API server`;
  return undefined;
}

/** The first volume of a pod that this kubelet cannot mount: grounds to reject the pod. */
export function unsupportedVolumeOf(pod: Pod, can: VolumeAbilities): string | undefined {
  for (const volume of pod.spec.volumes ?? []) {
    const problem = unsupportedVolume(volume, can);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Plugins that are known by what a source says, and by their directories on disk. */
export interface DriverPlugins {
  of(source: unknown, specName: string): VolumePlugin;
  byName(plugin: string): Promise<VolumePlugin | undefined>;
}

export class PluginSet implements VolumeResolver {
  readonly #byKind: ReadonlyMap<string, VolumePlugin>;
  readonly #byName: ReadonlyMap<string, VolumePlugin>;
  readonly #can: VolumeAbilities;
  readonly #claims: ClaimResolver | undefined;
  readonly #flex: DriverPlugins | undefined;

  /** `plugins` by the field of a pod's volume they answer for. */
  constructor(
    plugins: Readonly<Record<string, VolumePlugin>>,
    can: VolumeAbilities,
    { claims, flex }: { readonly claims?: ClaimResolver | undefined; readonly flex?: DriverPlugins | undefined } = {},
  ) {
    this.#can = can;
    this.#claims = claims;
    this.#flex = flex;
    this.#byKind = new Map(Object.entries(plugins));
    this.#byName = new Map(Object.values(plugins).map((plugin) => [plugin.name, plugin]));
  }

  async resolve(pod: Pod, volume: Volume, signal: AbortSignal): Promise<ResolvedVolume> {
    signal.throwIfAborted();
    const problem = unsupportedVolume(volume, this.#can);
    if (problem !== undefined) throw new KubeletError('unimplemented', problem);
    const claim = claimOf(pod, volume);
    if (claim !== undefined && this.#claims !== undefined) return this.#claims.resolve(pod, volume, claim, signal);
    const migrated = migratedPodVolume(volume, namespaceOf(pod));
    const plugin = this.#pluginOf(volume, migrated !== undefined);
    if (plugin === undefined) throw new KubeletError('unimplemented', `volume "${volume.name}" has no plugin`);
    await plugin.ready?.(signal);
    const place = { plugin, volumeMode: 'Filesystem', readOnly: false } as const;
    if (migrated === undefined) return { ...place, specName: volume.name };
    const persistent = { volume: migrated, mountOptions: [], migrated: true };
    return { ...place, specName: migrated.metadata.name, persistent };
  }

  #pluginOf(volume: Volume, isMigrated: boolean): VolumePlugin | undefined {
    if (volume.flexVolume !== undefined) return this.#flex?.of(volume.flexVolume, volume.name);
    return this.#byKind.get(isMigrated ? 'csi' : (kindOf(volume) ?? ''));
  }

  all(): Iterable<VolumePlugin> {
    return this.#byName.values();
  }

  async byName(plugin: string): Promise<VolumePlugin | undefined> {
    return this.#byName.get(plugin) ?? this.#flex?.byName(plugin);
  }
}
