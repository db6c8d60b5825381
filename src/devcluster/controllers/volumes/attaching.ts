// Which volumes a node needs attached, which it may lose, and what its status says about them. Pure.
import { createHash } from 'node:crypto';
import { at, recordsAt, textAt, textsAt, type ApiObject, type Json } from '../../api/objects.ts';

/** The name the kubelet works out as well. */
export const attachmentName = (handle: string, driver: string, node: string): string =>
  `csi-${createHash('sha256').update(`${handle}${driver}${node}`).digest('hex')}`;

export const uniqueName = (volume: ApiObject): string =>
  `kubernetes.io/csi/${textAt(volume, 'spec', 'csi', 'driver')}^${textAt(volume, 'spec', 'csi', 'volumeHandle')}`;

export type WantedVolume = { readonly volume: ApiObject; readonly pods: readonly ApiObject[] };

export type AttachPlan = {
  readonly attach: readonly WantedVolume[];
  /** Attachments nobody needs and the node no longer uses. */
  readonly detach: readonly ApiObject[];
  readonly volumesAttached: readonly Json[];
};

export type NodeView = {
  readonly node: ApiObject;
  readonly wanted: ReadonlyMap<string, WantedVolume>;
  /** Of this node. */
  readonly attachments: readonly ApiObject[];
  /** Volumes by name. */
  readonly volumes: ReadonlyMap<string, ApiObject>;
};

const volumeOf = (attachment: ApiObject): string => textAt(attachment, 'spec', 'source', 'persistentVolumeName');

/**
 * A volume goes only when no pod of the node needs it and the node has said that it is not in use. It leaves the node's
 * status before its attachment is deleted, so that a pod that comes back waits for the next one.
 */
export function planAttachments({ node, wanted, attachments, volumes }: NodeView): AttachPlan {
  const inUse = new Set(textsAt(node, 'status', 'volumesInUse'));
  const attach = [...wanted.values()].filter((w) => !attachments.some((a) => volumeOf(a) === w.volume.metadata.name));
  const detach: ApiObject[] = [];
  const volumesAttached: Json[] = [];
  for (const attachment of attachments) {
    const name = volumeOf(attachment);
    const volume = volumes.get(name);
    const unique = volume === undefined ? '' : uniqueName(volume);
    const isGoing = attachment.metadata.deletionTimestamp !== undefined;
    if (!isGoing && !wanted.has(name) && !inUse.has(unique)) detach.push(attachment);
    else if (!isGoing && unique !== '' && at(attachment, 'status', 'attached') === true)
      volumesAttached.push({ name: unique, devicePath: '' });
  }
  return { attach, detach, volumesAttached };
}

/** The volumes in `now` that were not in the node's status before. */
export const newlyAttached = (node: ApiObject, now: readonly Json[]): string[] => {
  const before = new Set(recordsAt(node, 'status', 'volumesAttached').map((v) => textAt(v, 'name')));
  return now.map((v) => textAt(v, 'name')).filter((name) => !before.has(name));
};
