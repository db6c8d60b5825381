// What the claims of a pod mean for where it can go. Pure.
import type { Node } from '../../../core/node.ts';
import { keyOf, numberAt, recordsAt, textAt, textsAt, type ApiObject } from '../../api/objects.ts';
import { reaches } from './matching.ts';
import { claimNamesOf, isDeleting, isFinished } from './objects.ts';

export type ClaimsWorld = {
  readonly claim: (key: string) => ApiObject | undefined;
  readonly volume: (name: string) => ApiObject | undefined;
  readonly storageClass: (name: string) => ApiObject | undefined;
  /** Only asked about claims that one pod may have at a time. */
  readonly pods: () => readonly ApiObject[];
};

export type ClaimsOfPod =
  | { readonly problem: string }
  | {
      /** Bound ones: the pod can go where they are. */
      readonly volumes: readonly ApiObject[];
      /** To be bound once the pod has a node in view. */
      readonly waiting: readonly ApiObject[];
    };

export function claimsOfPod(pod: ApiObject, world: ClaimsWorld): ClaimsOfPod {
  const volumes: ApiObject[] = [];
  const waiting: ApiObject[] = [];
  for (const name of claimNamesOf(pod)) {
    const claim = world.claim(keyOf(pod.metadata.namespace, name));
    if (claim === undefined) return { problem: `persistentvolumeclaim "${name}" not found` };
    if (isDeleting(claim)) return { problem: `persistentvolumeclaim "${name}" is being deleted` };
    if (textAt(claim, 'status', 'phase') === 'Lost')
      return {
        problem: `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${textAt(claim, 'spec', 'volumeName')}"`,
      };
    if (usedAlone(claim, pod, world.pods))
      return {
        problem: 'node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode',
      };
    const volume = world.volume(textAt(claim, 'spec', 'volumeName'));
    if (textAt(claim, 'status', 'phase') === 'Bound' && volume !== undefined) volumes.push(volume);
    else if (waitsForConsumer(claim, world)) waiting.push(claim);
    else return { problem: 'pod has unbound immediate PersistentVolumeClaims' };
  }
  return { volumes, waiting };
}

/** Whether another pod has a claim that only one pod may have. */
const usedAlone = (claim: ApiObject, pod: ApiObject, pods: ClaimsWorld['pods']): boolean =>
  textsAt(claim, 'spec', 'accessModes').includes('ReadWriteOncePod') &&
  pods().some(
    (other) =>
      other.metadata.uid !== pod.metadata.uid &&
      other.metadata.namespace === pod.metadata.namespace &&
      textAt(other, 'spec', 'nodeName') !== '' &&
      !isFinished(other) &&
      claimNamesOf(other).includes(claim.metadata.name),
  );

const waitsForConsumer = (claim: ApiObject, world: ClaimsWorld): boolean =>
  textAt(world.storageClass(textAt(claim, 'spec', 'storageClassName')), 'volumeBindingMode') === 'WaitForFirstConsumer';

export const volumesReach = (volumes: readonly ApiObject[], node: Node): boolean =>
  volumes.every((volume) => reaches(volume, node));

/** Whether a driver of the node can take no more: the volumes its pods have, and these. */
export function exceedsLimits(
  volumes: readonly ApiObject[],
  present: readonly ApiObject[],
  csiNode: ApiObject | undefined,
): boolean {
  const handles = (driver: string, of: readonly ApiObject[]): string[] =>
    of
      .filter((v) => textAt(v, 'spec', 'csi', 'driver') === driver)
      .map((v) => textAt(v, 'spec', 'csi', 'volumeHandle'));
  return recordsAt(csiNode, 'spec', 'drivers').some((driver) => {
    const limit = numberAt(driver, 'allocatable', 'count');
    const name = textAt(driver, 'name');
    const wanted = handles(name, volumes);
    return limit !== undefined && wanted.length > 0 && new Set([...handles(name, present), ...wanted]).size > limit;
  });
}
