// Whether a volume is to be grown on this node, and what the claim's status says before and after. Pure.
import { compareQuantities, quantity, toNumber } from '../../core/quantity.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../core/storage.ts';
import { strategicMergeDiff, type JsonObject } from '../../kube/patch.ts';

export type Expansion = {
  readonly size: string;
  readonly bytes: number;
  /** The claim's status follows the growth; an older resizer only wants to hear of its end. */
  readonly tracked: boolean;
  /** Another node has grown the volume and told the claim; this one has to follow. */
  readonly elsewhere?: boolean;
};

const PENDING = 'NodeResizePending';
const IN_PROGRESS = 'NodeResizeInProgress';
const INFEASIBLE = 'NodeResizeInfeasible';
const ERROR = 'NodeResizeError';
const NOT_REQUIRED = 'volume.kubernetes.io/node-expansion-not-required';
/** Conditions that are over once the volume has grown. */
const DONE_WITH: ReadonlySet<string> = new Set([
  'FileSystemResizePending',
  'Resizing',
  'ControllerResizeError',
  'NodeResizeError',
]);
/** Answers of a driver after which trying again is of no use. */
const HOPELESS: ReadonlySet<unknown> = new Set(['InvalidArgument', 'OutOfRange', 'NotFound']);

export const isHopelessCode = (grpcCode: unknown): boolean => HOPELESS.has(grpcCode);

/** It failed before, and somebody has asked for another size since: the controller is to try that one. */
export function isGivenUp({ spec, status }: PersistentVolumeClaim, size: string): boolean {
  const wanted = spec?.resources?.requests?.['storage'];
  const hasFailed = status?.conditions?.some(({ type }) => type === ERROR) === true;
  return hasFailed && wanted !== undefined && compareQuantities(quantity(wanted), quantity(size)) !== 0;
}

/** `here`: how large the volume is on this node, as far as it is known; at first it is what the claim says. */
export function expansionOf(
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
  here?: string,
): Expansion | undefined {
  const wanted = volume.spec.capacity?.['storage'];
  const { capacity, allocatedResources, allocatedResourceStatuses } = claim.status ?? {};
  const known = capacity?.['storage'];
  if (wanted === undefined || known === undefined) return undefined;
  if (!isLarger(wanted, here ?? known)) return undefined;
  const status = allocatedResourceStatuses?.['storage'] ?? '';
  const allocated = allocatedResources?.['storage'];
  if (!isLarger(wanted, known))
    return mustFollow(claim) ? { size: wanted, bytes: bytes(wanted), tracked: false, elsewhere: true } : undefined;
  if (status === '' && allocated === undefined) return { size: wanted, bytes: bytes(wanted), tracked: false };
  if (status !== PENDING && status !== IN_PROGRESS) return undefined;
  const size = allocated ?? wanted;
  return { size, bytes: bytes(size), tracked: true };
}

const isLarger = (a: string, b: string): boolean => compareQuantities(quantity(a), quantity(b)) > 0;

/** Volumes that several nodes use are grown on each of them, unless their driver said that once is enough. */
const mustFollow = ({ metadata, spec, status }: PersistentVolumeClaim): boolean =>
  (status?.allocatedResourceStatuses?.['storage'] ?? '') === '' &&
  spec?.accessModes?.includes('ReadWriteMany') === true &&
  metadata.annotations?.[NOT_REQUIRED] === undefined;

const bytes = (size: string): number => toNumber(quantity(size));

type Status = NonNullable<PersistentVolumeClaim['status']>;

/** The patch of a claim's status, bound to the version it was made from. */
function patchOf(claim: PersistentVolumeClaim, status: Status, bound: boolean): JsonObject {
  const patch = strategicMergeDiff({ status: claim.status ?? {} }, { status }, { 'status.conditions': 'type' });
  const version = claim.metadata.resourceVersion;
  return bound && version !== undefined ? { ...patch, metadata: { resourceVersion: version } } : patch;
}

/** Undefined when the claim says so already. */
export function begunPatch(claim: PersistentVolumeClaim): JsonObject | undefined {
  const statuses = claim.status?.allocatedResourceStatuses ?? {};
  if (statuses['storage'] === IN_PROGRESS) return undefined;
  return patchOf(claim, { ...claim.status, allocatedResourceStatuses: { ...statuses, storage: IN_PROGRESS } }, true);
}

export function grownPatch(claim: PersistentVolumeClaim, size: string): JsonObject {
  const { allocatedResourceStatuses, ...status } = claim.status ?? {};
  const { storage: _done, ...others } = allocatedResourceStatuses ?? {};
  const after: Status = {
    ...status,
    capacity: { ...status.capacity, storage: size },
    ...(Object.keys(others).length === 0 ? {} : { allocatedResourceStatuses: others }),
    conditions: (status.conditions ?? []).filter(({ type }) => !DONE_WITH.has(type)),
  };
  return patchOf(claim, after, false);
}

/** `isHopeless`: this size is not tried again. */
export function failedPatch(claim: PersistentVolumeClaim, why: string, isHopeless: boolean, now: string): JsonObject {
  const conditions = (claim.status?.conditions ?? []).filter(({ type }) => type !== ERROR);
  const failure = { type: ERROR, status: 'True', message: `failed to expand pvc with ${why}`, lastTransitionTime: now };
  const after: Status = { ...claim.status, conditions: [...conditions, failure] };
  const statuses = { ...claim.status?.allocatedResourceStatuses, storage: INFEASIBLE };
  return patchOf(claim, isHopeless ? { ...after, allocatedResourceStatuses: statuses } : after, false);
}
