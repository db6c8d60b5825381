// What a kubelet may ask for: its own node, the pods bound to it, what those pods refer to, and nothing else. The rules
// of the real node authorizer, so that a kubelet that asks for too much fails here first.
import { keyOf, textAt } from '../objects.ts';
import type { RequestInfo } from '../request-info.ts';
import type { ObjectStore } from '../store.ts';
import type { User } from '../strategy.ts';
import { attachmentsOf, isReferenced, isReferenceKind, volumesOf } from './node-references.ts';

const PREFIX = 'system:node:';

export const isNode = (user: User): boolean => user.groups.includes('system:nodes') && user.name.startsWith(PREFIX);
export const nodeNameOf = (user: User): string => user.name.slice(PREFIX.length);

type AuthorizerDecision = { readonly allowed: boolean; readonly reason: string };
const YES: AuthorizerDecision = { allowed: true, reason: '' };
const no = (reason: string): AuthorizerDecision => ({ allowed: false, reason });
const when = (condition: boolean, reason: string): AuthorizerDecision => (condition ? YES : no(reason));

const READ = ['get', 'list', 'watch'];

/** Verbs that need no look at the objects. `group/resource/subresource` → verbs. */
const PLAIN: Readonly<Record<string, readonly string[]>> = {
  '/services': READ,
  '/events': ['create', 'update', 'patch'],
  'events.k8s.io/events': ['create', 'update', 'patch'],
  'storage.k8s.io/csidrivers': READ,
  'node.k8s.io/runtimeclasses': READ,
  'authentication.k8s.io/tokenreviews': ['create'],
  'authorization.k8s.io/subjectaccessreviews': ['create'],
  'authorization.k8s.io/localsubjectaccessreviews': ['create'],
  'certificates.k8s.io/certificatesigningrequests': ['create', 'get', 'list', 'watch'],
  'certificates.k8s.io/certificatesigningrequests/selfnodeclient': ['create'],
  'certificates.k8s.io/clustertrustbundles': READ,
  '/pods': ['create', 'delete'],
  '/pods/status': ['update', 'patch'],
  '/pods/eviction': ['create'],
  '/persistentvolumeclaims/status': ['get', 'update', 'patch'],
  '/nodes': ['create', 'update', 'patch'],
  '/nodes/status': ['update', 'patch'],
};

export function nodeMay(store: ObjectStore, user: User, info: RequestInfo): AuthorizerDecision {
  if (!info.isResource) return no('');
  const node = nodeNameOf(user);
  const path = `${info.group}/${info.resource}${info.subresource === '' ? '' : `/${info.subresource}`}`;
  if (PLAIN[path]?.includes(info.verb) === true) return YES;
  switch (`${info.group}/${info.resource}`) {
    case '/nodes':
      return nodeObject(info, node);
    case '/pods':
      return pods(store, info, node);
    case 'coordination.k8s.io/leases':
      return lease(info, node);
    case 'storage.k8s.io/csinodes':
      return when(
        info.name === node || (info.verb === 'create' && info.name === ''),
        'can only access CSINode with the same name as the requesting node',
      );
    case 'resource.k8s.io/resourceslices':
      return slices(info, node);
    case 'certificates.k8s.io/podcertificaterequests':
      return certificateRequests(store, info, node);
    case '/persistentvolumes':
      return when(info.verb === 'get' && volumesOf(store, node).has(info.name), noRelation(node));
    case 'storage.k8s.io/volumeattachments':
      return when(info.verb === 'get' && attachmentsOf(store, node).has(info.name), noRelation(node));
    default:
      return referenced(store, info, node);
  }
}

const noRelation = (node: string): string => `no relationship found between node '${node}' and this object`;

function nodeObject(info: RequestInfo, node: string): AuthorizerDecision {
  if (info.subresource !== '') return no('');
  return when(READ.includes(info.verb) && info.name === node, 'node cannot read all nodes, only its own Node object');
}

function pods(store: ObjectStore, info: RequestInfo, node: string): AuthorizerDecision {
  if (info.subresource !== '') return no('');
  if (info.verb === 'get') {
    const pod = store.get('pods', keyOf(info.namespace, info.name));
    return when(pod !== undefined && textAt(pod.object, 'spec', 'nodeName') === node, noRelation(node));
  }
  if (info.verb !== 'list' && info.verb !== 'watch') return no('');
  const own = info.fieldTerms.some((t) => t.field === 'spec.nodeName' && t.equal && t.value === node);
  return when(own, 'can only list/watch pods with spec.nodeName field selector');
}

function lease(info: RequestInfo, node: string): AuthorizerDecision {
  const verbs = ['get', 'create', 'update', 'patch', 'delete'];
  if (!verbs.includes(info.verb)) return no('can only get, create, update, patch, or delete a node lease');
  if (info.namespace !== 'kube-node-lease')
    return no('can only access leases in the "kube-node-lease" system namespace');
  return when(
    info.name === node || info.verb === 'create',
    'can only access node lease with the same name as the requesting node',
  );
}

function slices(info: RequestInfo, node: string): AuthorizerDecision {
  if (
    info.verb === 'create' ||
    info.verb === 'get' ||
    info.verb === 'update' ||
    info.verb === 'patch' ||
    info.verb === 'delete'
  )
    return YES;
  const own = info.fieldTerms.some((t) => t.field === 'spec.nodeName' && t.equal && t.value === node);
  return when(own, 'can only list/watch/deletecollection resourceslices with spec.nodeName field selector');
}

/** Which requests it may create is decided by the rules of admission. */
function certificateRequests(store: ObjectStore, info: RequestInfo, node: string): AuthorizerDecision {
  if (info.subresource !== '') return no('nodes may not access the status subresource of PodCertificateRequests');
  if (info.verb === 'create') return YES;
  if (info.verb === 'get') {
    const request = store.get('certificates.k8s.io/podcertificaterequests', keyOf(info.namespace, info.name));
    return when(textAt(request?.object, 'spec', 'nodeName') === node, noRelation(node));
  }
  if (info.verb !== 'list' && info.verb !== 'watch') return no(`nodes may not ${info.verb} podcertificaterequests`);
  const own = info.fieldTerms.some((t) => t.field === 'spec.nodeName' && t.equal && t.value === node);
  return when(own, 'can only list/watch podcertificaterequests with nodeName field selector');
}

function referenced(store: ObjectStore, info: RequestInfo, node: string): AuthorizerDecision {
  if (!isReferenceKind(info.resource) || (info.group !== '' && info.group !== 'resource.k8s.io')) return no('');
  const isToken = info.resource === 'serviceaccounts' && info.subresource === 'token' && info.verb === 'create';
  const canWatch = info.resource === 'secrets' || info.resource === 'configmaps';
  const isRead = info.subresource === '' && (info.verb === 'get' || (canWatch && READ.includes(info.verb)));
  if (!isToken && !isRead) return no('can only read resources of this type');
  if (info.name === '') return no('No Object name found');
  return when(isReferenced(store, node, info.resource, info.namespace, info.name), noRelation(node));
}
