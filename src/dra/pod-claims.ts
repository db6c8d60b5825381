// Which claims a pod and its containers use, and whether the pod may use them. Pure.
import { namespaceOf, podKey, uidOf, type Container, type Pod, type PodResourceClaim } from '../core/pod.ts';
import { quantity } from '../core/quantity.ts';
import { isExtendedResource } from '../core/resource-names.ts';
import type { ResourceClaim } from '../kube/resources.ts';
import { KubeletError } from '../lib/errors.ts';

export type PodClaim = {
  /** The entry in the pod's spec; absent for the claim of extended resources. */
  readonly entry?: string;
  readonly claimName: string;
  /** Made from a template: it must be the pod's own. */
  readonly mustOwn: boolean;
};

const DEVICE_CLASS_PREFIX = 'deviceclass.resource.kubernetes.io/';

/** In the order of the spec, the claim of extended resources last. Throws while a claim is still to be made. */
export function podClaims(pod: Pod, extendedResources: boolean): readonly PodClaim[] {
  const claims = (pod.spec.resourceClaims ?? []).flatMap((entry) => {
    const claim = nameOf(pod, entry);
    return claim === undefined ? [] : [claim];
  });
  const extended = pod.status?.extendedResourceClaimStatus;
  if (!extendedResources || extended === undefined) return claims;
  return [...claims, { claimName: extended.resourceClaimName, mustOwn: false }];
}

/** Undefined when no claim is needed for this entry. */
function nameOf(pod: Pod, entry: PodResourceClaim): PodClaim | undefined {
  if (entry.resourceClaimName !== undefined)
    return { entry: entry.name, claimName: entry.resourceClaimName, mustOwn: false };
  if (entry.resourceClaimTemplateName === undefined)
    throw new KubeletError(
      'invalid',
      `pod "${podKey(pod)}", spec.resourceClaim "${entry.name}": none of the supported fields are set`,
    );
  const status = pod.status?.resourceClaimStatuses?.find((s) => s.name === entry.name);
  if (status === undefined) throw new KubeletError('notFound', `pod "${podKey(pod)}": ResourceClaim not created yet`);
  if (status.resourceClaimName === undefined) return undefined;
  return { entry: entry.name, claimName: status.resourceClaimName, mustOwn: true };
}

/**
 * The drivers whose devices the claim has. Throws when the pod may not use it, or nothing is allocated yet. `podGroups`: a
 * claim may also belong to the pod's group (gate `DRAWorkloadResourceClaims`).
 */
export function driversOf(
  pod: Pod,
  { claimName, mustOwn }: PodClaim,
  claim: ResourceClaim,
  podGroups: boolean,
): readonly string[] {
  const { uid = '', name, namespace = '' } = claim.metadata;
  const group = podGroups ? pod.spec.schedulingGroup?.podGroupName : undefined;
  if (mustOwn && !isOwner(pod, claim) && !isOfGroup(group, claim)) {
    const owners = group === undefined ? 'Pod is not owner' : `neither Pod nor PodGroup ${group} is the owner`;
    const text = `ResourceClaim ${namespace}/${name} was not created for Pod ${podKey(pod)} (${owners})`;
    throw new KubeletError('denied', text);
  }
  if (!isReserved(pod, group, claim))
    throw new KubeletError(
      'denied',
      `pod ${pod.metadata.name} (${uidOf(pod)}) is not allowed to use ResourceClaim ${claimName} (${uid})`,
    );
  const { allocation } = claim.status ?? {};
  if (allocation === undefined) throw new KubeletError('unavailable', `ResourceClaim ${name}: not allocated`);
  return [...new Set((allocation.devices?.results ?? []).map((result) => result.driver))].sort();
}

const isOwner = (pod: Pod, { metadata }: ResourceClaim): boolean =>
  metadata.namespace === namespaceOf(pod) &&
  (metadata.ownerReferences ?? []).some((owner) => owner.controller === true && owner.uid === uidOf(pod));

const SCHEDULING = 'scheduling.k8s.io';

/** By name: a pod does not know the UID of its group. */
const isOfGroup = (group: string | undefined, { metadata }: ResourceClaim): boolean =>
  group !== undefined &&
  (metadata.ownerReferences ?? []).some(
    ({ controller, kind, name, apiVersion }) =>
      controller === true && kind === 'PodGroup' && name === group && apiVersion.startsWith(`${SCHEDULING}/`),
  );

const isReserved = (pod: Pod, group: string | undefined, { status }: ResourceClaim): boolean =>
  (status?.reservedFor ?? []).some(
    ({ uid, apiGroup, resource, name }) =>
      uid === uidOf(pod) ||
      (group !== undefined && apiGroup === SCHEDULING && resource === 'podgroups' && name === group),
  );

export type ContainerRequest = {
  readonly claimName: string;
  /** Empty: all of the claim. */
  readonly request: string;
  /** What its devices are listed under in the container's status. */
  readonly statusName?: string;
};

/** What the container uses of the pod's claims. */
export function containerRequests(
  pod: Pod,
  container: Container,
  extendedResources: boolean,
): readonly ContainerRequest[] {
  const wanted = container.resources?.claims ?? [];
  const own = (wanted.length === 0 ? [] : podClaims(pod, false)).flatMap(({ entry, claimName }) =>
    wanted
      .filter((claim) => claim.name === entry)
      .map(({ name, request = '' }) => ({
        claimName,
        request,
        statusName: `claim:${name}${request === '' ? '' : `/${request}`}`,
      })),
  );
  const extended = extendedResources ? pod.status?.extendedResourceClaimStatus : undefined;
  if (extended === undefined) return own;
  const mapped = (extended.requestMappings ?? [])
    .filter((m) => m.containerName === container.name && isRequested(container, m.resourceName))
    .map(({ requestName }) => ({ claimName: extended.resourceClaimName, request: requestName }));
  return [...own, ...mapped];
}

const isRequested = (container: Container, resource: string): boolean =>
  (isExtendedResource(resource) || resource.startsWith(DEVICE_CLASS_PREFIX)) &&
  quantity(container.resources?.requests?.[resource]).nano > 0n;
