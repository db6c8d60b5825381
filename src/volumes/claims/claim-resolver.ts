// Follows a pod's claim to the persistent volume behind it and finds the plugin of that volume's source.
import { namespaceOf, type Pod, type Volume } from '../../core/pod.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../core/storage.ts';
import { KubeletError, messageOf } from '../../lib/errors.ts';
import type { ResolvedVolume, VolumePlugin } from '../plugin.ts';
import { boundProblem, claimProblem, modeProblem, mountOptionsOf, type ClaimUse } from './claim-checks.ts';

/** Rejects with the API server's text; `notFound` when there is no such object. */
export interface ClaimObjects {
  claim(namespace: string, name: string, signal: AbortSignal): Promise<PersistentVolumeClaim>;
  volume(name: string, signal: AbortSignal): Promise<PersistentVolume>;
}

export type ClaimResolverDeps = {
  readonly objects: ClaimObjects;
  /** By the field of a persistent volume's spec and what stands in it. */
  readonly pluginOf: (field: string, source: unknown, specName: string) => VolumePlugin | undefined;
  /** Shows a volume of a kind that was moved to CSI as the CSI volume it is treated as. */
  readonly migrate?: (volume: PersistentVolume) => PersistentVolume | undefined;
};

export class ClaimResolver {
  readonly #deps: ClaimResolverDeps;

  constructor(deps: ClaimResolverDeps) {
    this.#deps = deps;
  }

  async resolve(pod: Pod, volume: Volume, use: ClaimUse, signal: AbortSignal): Promise<ResolvedVolume> {
    const claim = await this.#claim(pod, use, signal);
    const bound = await this.#volume(pod, use, claim, signal);
    const migrated = this.#deps.migrate?.(bound);
    const persistent = migrated ?? bound;
    const mode = modeProblem(pod, volume, bound.spec.volumeMode, bound.metadata.name);
    if (mode !== undefined) throw new KubeletError('invalid', mode);
    const plugin = this.#pluginOf(persistent);
    if (plugin === undefined)
      throw new KubeletError(
        'invalid',
        `failed to get Plugin from volumeSpec for volume "${bound.metadata.name}" err=no volume plugin matched`,
      );
    await plugin.ready?.(signal);
    return {
      plugin,
      specName: bound.metadata.name,
      volumeMode: bound.spec.volumeMode ?? 'Filesystem',
      readOnly: use.readOnly,
      persistent: {
        volume: persistent,
        claim,
        mountOptions: mountOptionsOf(bound),
        migrated: migrated !== undefined,
      },
    };
  }

  async #claim(pod: Pod, use: ClaimUse, signal: AbortSignal): Promise<PersistentVolumeClaim> {
    const namespace = namespaceOf(pod);
    let claim: PersistentVolumeClaim;
    try {
      claim = await this.#deps.objects.claim(namespace, use.name, signal);
    } catch (err) {
      signal.throwIfAborted();
      throw unread(`${namespace}/${use.name}`, 'PVC', err);
    }
    const problem = claimProblem(pod, use, claim);
    if (problem !== undefined) throw new KubeletError('invalid', problem);
    return claim;
  }

  async #volume(pod: Pod, use: ClaimUse, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<PersistentVolume> {
    const key = `${namespaceOf(pod)}/${use.name}`;
    const name = claim.spec?.volumeName ?? '';
    let volume: PersistentVolume;
    try {
      volume = await this.#deps.objects.volume(name, signal);
    } catch (err) {
      signal.throwIfAborted();
      throw unread(key, `PV ${name}`, err);
    }
    const problem = boundProblem(key, claim, volume);
    if (problem !== undefined) throw new KubeletError('invalid', problem);
    return volume;
  }

  #pluginOf({ metadata, spec }: PersistentVolume): VolumePlugin | undefined {
    for (const [field, value] of Object.entries(spec)) {
      const plugin =
        value === undefined || value === null ? undefined : this.#deps.pluginOf(field, value, metadata.name);
      if (plugin !== undefined) return plugin;
    }
    return undefined;
  }
}

const unread = (key: string, what: string, cause: unknown): KubeletError =>
  new KubeletError(
    'unavailable',
    `error processing PVC ${key}: failed to fetch ${what} from API server: ${messageOf(cause)}`,
    { cause },
  );
