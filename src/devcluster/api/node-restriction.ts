// The NodeRestriction admission rules: what a kubelet may write, seen from the object itself.
import { forbidden } from './api-error.ts';
import { isNode, nodeNameOf } from './auth/node-authorizer.ts';
import { keyOf, recordAt, recordsAt, sameJson, textAt, type ApiObject } from './objects.ts';
import type { Write } from './registry.ts';
import type { ObjectStore } from './store.ts';
import { MIRROR_ANNOTATION } from './strategies/pod-admission.ts';

const OWN_LABELS = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/arch',
  'kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
]);

export const restrictNodes =
  (store: ObjectStore) =>
  (write: Write): void => {
    const { user } = write.context;
    if (!isNode(user)) return;
    const why = whyNot(write, nodeNameOf(user), store);
    if (why !== undefined) throw forbidden(write.type, write.object.metadata.name, why);
  };

function whyNot(write: Write, node: string, store: ObjectStore): string | undefined {
  switch (write.type.storage) {
    case 'pods':
      return podProblem(write, node);
    case 'nodes':
      return nodeProblem(write, node);
    case 'coordination.k8s.io/leases':
      return write.object.metadata.name === node
        ? undefined
        : 'can only access node lease with the same name as the requesting node';
    case 'storage.k8s.io/csinodes':
      return write.object.metadata.name === node
        ? undefined
        : 'can only access CSINode with the same name as the requesting node';
    case 'resource.k8s.io/resourceslices':
      return textAt(write.object, 'spec', 'nodeName') === node
        ? undefined
        : `can only modify ResourceSlice with same nodeName as ${node}`;
    case 'certificates.k8s.io/podcertificaterequests':
      return certificateRequestProblem(write.object, node, store);
    default:
      return undefined;
  }
}

function podProblem(write: Write, node: string): string | undefined {
  const owner = textAt(write.old, 'spec', 'nodeName');
  if (write.operation === 'delete')
    return owner === node ? undefined : `node "${node}" can only delete pods with spec.nodeName set to itself`;
  if (write.operation === 'update') {
    if (write.subresource !== 'status')
      return `unexpected operation UPDATE, node "${node}" can only create and delete mirror pods`;
    if (owner !== node) return `node "${node}" can only update pod status for pods with spec.nodeName set to itself`;
    return sameJson(write.object.metadata.labels ?? {}, write.old?.metadata.labels ?? {})
      ? undefined
      : `node "${node}" cannot update labels through pod status`;
  }
  return mirrorProblem(write.object, node);
}

function mirrorProblem(pod: ApiObject, node: string): string | undefined {
  if (pod.metadata.annotations?.[MIRROR_ANNOTATION] === undefined)
    return `pod does not have "${MIRROR_ANNOTATION}" annotation, node "${node}" can only create mirror pods`;
  if (textAt(pod, 'spec', 'nodeName') !== node)
    return `node "${node}" can only create pods with spec.nodeName set to itself`;
  const owners = pod.metadata.ownerReferences ?? [];
  const [owner] = owners;
  if (owners.length !== 1 || owner === undefined || owner.kind !== 'Node' || owner.name !== node)
    return `node "${node}" can only create pods with a single owner reference set to itself`;
  if (owner.controller !== true)
    return `node "${node}" can only create pods with a controller owner reference set to itself`;
  if (textAt(pod, 'spec', 'serviceAccountName') !== '')
    return `node "${node}" can not create pods that reference a service account`;
  for (const volume of recordsAt(pod, 'spec', 'volumes'))
    for (const source of ['secret', 'configMap', 'persistentVolumeClaim'])
      if (volume[source] !== undefined) return `node "${node}" can not create pods that reference ${source}s`;
  return undefined;
}

function nodeProblem(write: Write, node: string): string | undefined {
  if (write.object.metadata.name !== node)
    return `node "${node}" is not allowed to modify node "${write.object.metadata.name}"`;
  if (write.operation === 'delete') return `node "${node}" cannot delete itself`;
  const before = write.old?.metadata.labels ?? {};
  const changed = Object.entries({ ...before, ...write.object.metadata.labels })
    .map(([key]) => key)
    .filter((key) => before[key] !== write.object.metadata.labels?.[key]);
  const refused = changed.filter((key) => isReservedLabel(key));
  if (refused.length > 0) return `is not allowed to modify labels: ${refused.join(', ')}`;
  if (
    write.operation === 'update' &&
    !sameJson(recordsAt(write.object, 'spec', 'taints'), recordsAt(write.old, 'spec', 'taints'))
  )
    return `node "${node}" is not allowed to modify taints`;
  return undefined;
}

/** A kubelet asks only for pods that run here, and says truly who they are. */
function certificateRequestProblem(request: ApiObject, node: string, store: ObjectStore): string | undefined {
  const spec = recordAt(request, 'spec');
  const [podName, account] = [textAt(spec, 'podName'), textAt(spec, 'serviceAccountName')];
  const { namespace } = request.metadata;
  if (textAt(spec, 'nodeName') !== node)
    return `PodCertificateRequest.Spec.NodeName="${textAt(spec, 'nodeName')}", which is not the requesting node "${node}"`;
  const uidOf = (storage: string, key: string): string => store.get(storage, key)?.object.metadata.uid ?? '';
  const pod = store.get('pods', keyOf(namespace, podName))?.object;
  if (textAt(spec, 'nodeUID') !== uidOf('nodes', node)) return 'the node UID is not that of the running node';
  if (pod === undefined || textAt(spec, 'podUID') !== pod.metadata.uid)
    return `the pod UID is not that of pod "${podName}"`;
  if (textAt(pod, 'spec', 'nodeName') !== node)
    return `pod "${podName}" is not running on node "${node}" named in the PodCertificateRequest`;
  if (pod.metadata.annotations?.[MIRROR_ANNOTATION] !== undefined) return `pod "${podName}" is a mirror pod`;
  if (account !== textAt(pod, 'spec', 'serviceAccountName'))
    return `the service account is not that of pod "${podName}"`;
  if (textAt(spec, 'serviceAccountUID') !== uidOf('serviceaccounts', keyOf(namespace, account)))
    return `the service account UID is not that of "${account}"`;
  return undefined;
}

function isReservedLabel(key: string): boolean {
  const prefix = key.split('/')[0] ?? '';
  if (/(^|\.)node-restriction\.kubernetes\.io$/.test(prefix)) return true;
  if (!/(^|\.)(kubernetes\.io|k8s\.io)$/.test(prefix)) return false;
  return !OWN_LABELS.has(key) && !/(^|\.)(kubelet|node)\.kubernetes\.io$/.test(prefix);
}
