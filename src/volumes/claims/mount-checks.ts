// What is checked of a persistent volume right before it is mounted. Pure; upstream's words.
import type { Node } from '../../core/node.ts';
import { matchesNodeTerms } from '../../core/selectors.ts';
import type { PersistentVolume } from '../../core/storage.ts';
import type { VolumePlugin } from '../plugin.ts';

const GID_ANNOTATION = 'pv.beta.kubernetes.io/gid';

export type MountProblem = { readonly stage: string; readonly message: string };

export type MountCheck = {
  readonly volume: PersistentVolume;
  readonly mountOptions: readonly string[];
  readonly plugin: Pick<VolumePlugin, 'takesMountOptions' | 'makesDevices'>;
  /** Undefined while it is not known; then nothing is said about affinity. */
  readonly node: Node | undefined;
  /** Another pod has the volume mounted, or may have. */
  readonly usedByOthers: boolean;
};

export function mountProblem(check: MountCheck): MountProblem | undefined {
  const { volume, node } = check;
  const isBlock = volume.spec.volumeMode === 'Block';
  const verb = isBlock ? 'MapVolume' : 'MountVolume';
  if (isBlock && check.plugin.makesDevices !== true)
    return {
      stage: 'MapVolume.FindMapperPluginBySpec failed to find BlockVolumeMapper plugin. Volume plugin is nil.',
      message: 'volumes of this type cannot be used as devices',
    };
  const terms = volume.spec.nodeAffinity?.required?.nodeSelectorTerms;
  if (terms !== undefined && node !== undefined && !matchesNodeTerms(terms, node))
    return { stage: `${verb}.NodeAffinity check failed`, message: 'no matching NodeSelectorTerms' };
  if (!isBlock && check.mountOptions.length > 0 && check.plugin.takesMountOptions !== true)
    return {
      stage: 'MountVolume.MountOptionSupport check failed',
      message: 'mount options are not supported for this volume type',
    };
  if (isForOnePod(volume) && check.usedByOthers)
    return {
      stage: isBlock ? 'MapVolume.SetUpDevice failed' : 'MountVolume.SetUp failed',
      message: 'volume uses the ReadWriteOncePod access mode and is already in use by another pod',
    };
  return undefined;
}

const isForOnePod = ({ spec }: PersistentVolume): boolean =>
  spec.accessModes?.length === 1 && spec.accessModes[0] === 'ReadWriteOncePod';

/** The group that every container of the pod gets for this volume. */
export function gidOf({ metadata }: PersistentVolume): number | undefined {
  const text = metadata.annotations?.[GID_ANNOTATION] ?? '';
  return /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}
