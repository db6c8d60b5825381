// Which volume a claim gets. Pure.
import type { LabelSelector } from '../../../core/meta.ts';
import type { Node } from '../../../core/node.ts';
import type { NodeSelectorTerm } from '../../../core/pod.ts';
import { compareQuantities } from '../../../core/quantity.ts';
import { matchesLabelSelector, matchesNodeTerms } from '../../../core/selectors.ts';
import { at, isJson, recordAt, recordsAt, textAt, textsAt, type ApiObject } from '../../api/objects.ts';
import { amountAt } from '../../api/strategies/storage.ts';
import { isDeleting } from './objects.ts';

const modeOf = (object: ApiObject): string => textAt(object, 'spec', 'volumeMode') || 'Filesystem';

/** Why this volume cannot serve the claim, whoever has it. */
export function mismatch(volume: ApiObject, claim: ApiObject): string | undefined {
  const [has, wants] = [recordAt(volume, 'spec'), recordAt(claim, 'spec')];
  const size = amountAt(wants, 'resources', 'requests', 'storage');
  if (compareQuantities(amountAt(has, 'capacity', 'storage'), size) < 0) return 'requested PV is too small';
  if (textAt(has, 'storageClassName') !== textAt(wants, 'storageClassName')) return 'storageClassName does not match';
  if (modeOf(volume) !== modeOf(claim)) return 'incompatible volumeMode';
  const modes = textsAt(has, 'accessModes');
  if (!textsAt(wants, 'accessModes').every((mode) => modes.includes(mode))) return 'incompatible accessMode';
  return undefined;
}

/** Whether the volume names this claim, by uid or, reserved beforehand, by name alone. */
export const isReservedFor = (volume: ApiObject, claim: ApiObject): boolean => {
  const ref = recordAt(volume, 'spec', 'claimRef');
  return (
    textAt(ref, 'name') === claim.metadata.name &&
    textAt(ref, 'namespace') === claim.metadata.namespace &&
    ['', claim.metadata.uid].includes(textAt(ref, 'uid'))
  );
};

export const isFree = (volume: ApiObject): boolean => at(volume, 'spec', 'claimRef') === undefined;

export function reaches(volume: ApiObject, node: Node): boolean {
  const required = at(volume, 'spec', 'nodeAffinity', 'required');
  if (!isJson(required)) return true;
  return matchesNodeTerms(recordsAt(required, 'nodeSelectorTerms') as unknown as NodeSelectorTerm[], node);
}

/**
 * The volume for a claim that names none: one that is reserved for it, else the smallest that fits. `node` is where
 * its first pod goes, once that is known.
 */
export function bestVolume(
  volumes: readonly ApiObject[],
  claim: ApiObject,
  node: Node | undefined,
): ApiObject | undefined {
  const selector = at(claim, 'spec', 'selector');
  const fits = (v: ApiObject): boolean =>
    mismatch(v, claim) === undefined &&
    (!isJson(selector) || matchesLabelSelector(selector as LabelSelector, v.metadata.labels)) &&
    (node === undefined || reaches(v, node));
  const reserved = volumes.find((v) => isReservedFor(v, claim) && mismatch(v, claim) === undefined);
  if (reserved !== undefined) return reserved;
  return volumes
    .filter((v) => isFree(v) && !isDeleting(v) && fits(v))
    .toSorted((a, b) =>
      compareQuantities(amountAt(a, 'spec', 'capacity', 'storage'), amountAt(b, 'spec', 'capacity', 'storage')),
    )[0];
}
