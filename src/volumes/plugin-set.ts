// The kinds of volumes this kubelet can mount. A pod that asks for another one is refused by name, at once.
import type { Pod, Volume } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
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
]);

/** Why a volume cannot be mounted by this kubelet at all, or undefined if it can. */
function unsupportedVolume(volume: Volume): string | undefined {
  const kind = kindOf(volume);
  if (kind === undefined) return `volume "${volume.name}" names no kind of volume`;
  if (!SUPPORTED_KINDS.has(kind))
    return `volume "${volume.name}" is of kind ${kind}, which this kubelet does not support`;
  if (volume.projected?.sources?.some((source) => source.podCertificate !== undefined) === true) {
    return `volume "${volume.name}" projects a podCertificate, which this kubelet does not support`;
  }
  return undefined;
}

/** The first volume of a pod that this kubelet cannot mount: grounds to reject the pod. */
export function unsupportedVolumeOf(pod: Pod): string | undefined {
  for (const volume of pod.spec.volumes ?? []) {
    const problem = unsupportedVolume(volume);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

export class PluginSet implements VolumeResolver {
  readonly #byKind: ReadonlyMap<string, VolumePlugin>;
  readonly #byName: ReadonlyMap<string, VolumePlugin>;

  /** `plugins` by the field of a pod's volume they answer for. */
  constructor(plugins: Readonly<Record<string, VolumePlugin>>) {
    this.#byKind = new Map(Object.entries(plugins));
    this.#byName = new Map(Object.values(plugins).map((plugin) => [plugin.name, plugin]));
  }

  resolve(_pod: Pod, volume: Volume, signal: AbortSignal): Promise<ResolvedVolume> {
    signal.throwIfAborted();
    const problem = unsupportedVolume(volume);
    const plugin = this.#byKind.get(kindOf(volume) ?? '');
    if (problem !== undefined || plugin === undefined) {
      return Promise.reject(new KubeletError('unimplemented', problem ?? `volume "${volume.name}" has no plugin`));
    }
    return Promise.resolve({ plugin, specName: volume.name });
  }

  byName(plugin: string): VolumePlugin | undefined {
    return this.#byName.get(plugin);
  }
}
