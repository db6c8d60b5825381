// What a driver is asked for: from the volume, the pod, the CSIDriver object and the driver's capabilities to the fields of
// a request. Pure.
import { namespaceOf, uidOf, type Pod } from '../../core/pod.ts';
import type { CsiDriver, CsiVolumeSource, InlineCsiSource, PersistentVolume } from '../../core/storage.ts';
import { AccessModeType, type VolumeCapability } from '../../lib/csi-api/gen/csi.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { VolumeRequest } from '../plugin.ts';
import type { NodeCapabilities } from './csi-client.ts';
import { inlineHandle } from './csi-layout.ts';

/** A CSI volume of a pod, whether it brings it along or claims it. */
export type CsiVolume = {
  readonly driver: string;
  readonly handle: string;
  readonly specName: string;
  readonly isInline: boolean;
  readonly isBlock: boolean;
  readonly readOnly: boolean;
  readonly fsType: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly accessModes: readonly string[];
  readonly mountOptions: readonly string[];
  /** What it is mounted with, where a label is part of that. */
  readonly selinuxLabel?: string;
  /** It is of a kind that was moved to CSI. */
  readonly migrated: boolean;
  /** Undefined for a volume that a pod brings along. */
  readonly source?: CsiVolumeSource;
  readonly inlineSource?: InlineCsiSource;
};

export function csiVolumeOf({ pod, volume, specName, persistent, readOnly, volumeMode }: VolumeRequest): CsiVolume {
  const source = persistent?.volume.spec.csi;
  if (source !== undefined && persistent !== undefined) {
    return {
      driver: source.driver,
      handle: source.volumeHandle,
      specName,
      isInline: false,
      isBlock: volumeMode === 'Block',
      readOnly,
      fsType: source.fsType ?? '',
      attributes: source.volumeAttributes ?? {},
      accessModes: accessModesOf(persistent.volume),
      // The annotation of old volumes is not for drivers.
      mountOptions: persistent.volume.spec.mountOptions ?? [],
      migrated: persistent.migrated,
      source,
    };
  }
  const inline = volume.csi;
  if (inline === undefined) throw new KubeletError('invalid', `volume "${volume.name}" is no CSI volume`);
  return {
    driver: inline.driver,
    handle: inlineHandle(uidOf(pod), volume.name),
    specName,
    isInline: true,
    isBlock: false,
    readOnly: inline.readOnly === true,
    fsType: inline.fsType ?? '',
    attributes: inline.volumeAttributes ?? {},
    accessModes: ['ReadWriteOnce'],
    mountOptions: [],
    migrated: false,
    inlineSource: inline,
  };
}

const accessModesOf = ({ spec }: PersistentVolume): readonly string[] =>
  spec.accessModes === undefined || spec.accessModes.length === 0 ? ['ReadWriteOnce'] : spec.accessModes;

function accessMode(mode: string | undefined, can: NodeCapabilities): AccessModeType {
  const knowsPods = can.has('SINGLE_NODE_MULTI_WRITER');
  switch (mode) {
    case 'ReadOnlyMany':
      return AccessModeType.MULTI_NODE_READER_ONLY;
    case 'ReadWriteMany':
      return AccessModeType.MULTI_NODE_MULTI_WRITER;
    case 'ReadWriteOncePod':
      return knowsPods ? AccessModeType.SINGLE_NODE_SINGLE_WRITER : AccessModeType.SINGLE_NODE_WRITER;
    case 'ReadWriteOnce':
      return knowsPods ? AccessModeType.SINGLE_NODE_MULTI_WRITER : AccessModeType.SINGLE_NODE_WRITER;
    default:
      return AccessModeType.UNKNOWN;
  }
}

/** `fsGroup` counts only for drivers that mount with a group themselves. */
export function capabilityOf(volume: CsiVolume, can: NodeCapabilities, fsGroup?: number): VolumeCapability {
  const mode = { accessMode: { mode: accessMode(volume.accessModes[0], can) } };
  if (volume.isBlock) return { block: {}, ...mode };
  const group = fsGroup !== undefined && can.has('VOLUME_MOUNT_GROUP') ? String(fsGroup) : '';
  return {
    mount: { fsType: volume.fsType, mountFlags: [...volume.mountOptions], volumeMountGroup: group },
    ...mode,
  };
}

const INFO = 'csi.storage.k8s.io/';
export const TOKENS_KEY = `${INFO}serviceAccount.tokens`;

/** What the driver wants to know about the pod, over the volume's own attributes. */
export function publishContextOf(volume: CsiVolume, pod: Pod, driver: CsiDriver | undefined): Record<string, string> {
  if (driver?.spec.podInfoOnMount !== true) return { ...volume.attributes };
  return {
    ...volume.attributes,
    [`${INFO}pod.name`]: pod.metadata.name,
    [`${INFO}pod.namespace`]: namespaceOf(pod),
    [`${INFO}pod.uid`]: uidOf(pod),
    [`${INFO}serviceAccount.name`]: pod.spec.serviceAccountName ?? '',
    [`${INFO}ephemeral`]: String(volume.isInline),
  };
}

export const needsAttach = (driver: CsiDriver | undefined): boolean => driver?.spec.attachRequired !== false;

/** Why the driver may not be used this way. */
export function lifecycleProblem(volume: CsiVolume, driver: CsiDriver | undefined): string | undefined {
  const wanted = volume.isInline ? 'Ephemeral' : 'Persistent';
  const modes = driver?.spec.volumeLifecycleModes;
  const allowed = modes === undefined || modes.length === 0 ? ['Persistent'] : modes;
  if (allowed.includes(wanted)) return undefined;
  const has =
    driver === undefined ? 'no CSIDriver object' : `only supports [${allowed.map((m) => `"${m}"`).join(' ')}]`;
  return `kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: volume mode "${wanted}" not supported by driver ${volume.driver} (${has})`;
}

/** Whether the kubelet gives the volume's files to the pod's group. */
export function ownsFiles(
  volume: CsiVolume,
  pod: Pod,
  driver: CsiDriver | undefined,
  can: NodeCapabilities,
): boolean | { readonly problem: string } {
  if (pod.spec.securityContext?.fsGroup === undefined || volume.readOnly || can.has('VOLUME_MOUNT_GROUP')) return false;
  const policy = driver === undefined ? 'ReadWriteOnceWithFSType' : (driver.spec.fsGroupPolicy ?? '');
  switch (policy) {
    case '':
      return {
        problem:
          'kubernetes.io/csi: mounter.SetUpAt failed to check fsGroup policy: expected valid fsGroupPolicy, received nil value or empty string',
      };
    case 'None':
      return false;
    case 'File':
      return true;
    default:
      return volume.fsType !== '' && (volume.isInline || volume.accessModes.some(isForOneNode));
  }
}

const isForOneNode = (mode: string): boolean => mode === 'ReadWriteOnce' || mode === 'ReadWriteOncePod';
