// How the parts of an object are merged and owned: field by field, by key, as a set, or whole.
import { apiVersionOf, type ResourceType } from '../resources.ts';
import { jsonFields, messageOfKind, type Element, type Field } from '../schema/messages.ts';

export type Structure =
  | { readonly kind: 'whole' }
  | { readonly kind: 'set' }
  | { readonly kind: 'map'; readonly of: (key: string) => Structure }
  | { readonly kind: 'keyed'; readonly keys: readonly string[]; readonly item: Structure };

const WHOLE: Structure = { kind: 'whole' };

/** Lists whose elements are known by these fields, by the type of the element. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  Container: ['name'],
  ContainerPort: ['containerPort', 'protocol'],
  EnvVar: ['name'],
  EphemeralContainer: ['name'],
  HostAlias: ['ip'],
  NamespaceCondition: ['type'],
  NodeAddress: ['type'],
  NodeCondition: ['type'],
  PersistentVolumeClaimCondition: ['type'],
  PodCondition: ['type'],
  PodIP: ['ip'],
  PodResourceClaim: ['name'],
  PodResourceClaimStatus: ['name'],
  PodSchedulingGate: ['name'],
  ResourceClaim: ['name'],
  ServicePort: ['port', 'protocol'],
  TopologySpreadConstraint: ['topologyKey', 'whenUnsatisfiable'],
  Volume: ['name'],
  VolumeDevice: ['devicePath'],
  VolumeMount: ['mountPath'],
  'apps.DaemonSetCondition': ['type'],
  'apps.DeploymentCondition': ['type'],
  'apps.ReplicaSetCondition': ['type'],
  'apps.StatefulSetCondition': ['type'],
  'meta.Condition': ['type'],
  'meta.OwnerReference': ['uid'],
  'storage.CSINodeDriver': ['name'],
};
/** Where the type of the element does not say it. */
const FIELD_KEYS: Readonly<Record<string, readonly string[]>> = {
  'PodSpec.imagePullSecrets': ['name'],
  'ServiceAccount.secrets': ['name'],
};
const SETS = new Set(['meta.ObjectMeta.finalizers', 'NodeSpec.podCIDRs']);
const WHOLE_MAPS = new Set(['PodSpec.nodeSelector', 'ServiceSpec.selector']);
const WHOLE_MESSAGES = new Set([
  'ConfigMapKeySelector',
  'LocalObjectReference',
  'NodeSelector',
  'NodeSelectorTerm',
  'ObjectFieldSelector',
  'ObjectReference',
  'ResourceFieldSelector',
  'ScopeSelector',
  'SecretKeySelector',
  'SecretReference',
  'TopologySelectorTerm',
  'TypedLocalObjectReference',
  'meta.LabelSelector',
]);
/** What a key means when an element does not say it. */
export const KEY_DEFAULTS: Readonly<Record<string, string>> = { protocol: 'TCP' };

const known = new Map<string, Structure>();

function structureOfMessage(message: string): Structure {
  let found = known.get(message);
  if (found === undefined) {
    const fields = new Map(jsonFields(message).map((field) => [field.name, field]));
    found = {
      kind: 'map',
      of: (key) => {
        const field = fields.get(key);
        return field === undefined ? WHOLE : structureOfField(message, field);
      },
    };
    known.set(message, found);
  }
  return found;
}

const elementStructure = (element: Element): Structure =>
  element.kind === 'message' && !WHOLE_MESSAGES.has(element.message) ? structureOfMessage(element.message) : WHOLE;

function structureOfField(message: string, { name, shape, element }: Field): Structure {
  const path = `${message}.${name}`;
  if (shape === 'one') return elementStructure(element);
  if (shape === 'map') return WHOLE_MAPS.has(path) ? WHOLE : { kind: 'map', of: () => elementStructure(element) };
  if (SETS.has(path)) return { kind: 'set' };
  const keys = FIELD_KEYS[path] ?? (element.kind === 'message' ? KEYS[element.message] : undefined);
  if (keys === undefined || element.kind !== 'message') return WHOLE;
  return { kind: 'keyed', keys, item: structureOfMessage(element.message) };
}

/** Of kinds whose fields are not in the tables, maps are merged and lists are not. */
const ANY_MAP: Structure = { kind: 'map', of: () => ANY_MAP };

export function structureOfKind(type: ResourceType): Structure {
  const message = messageOfKind(apiVersionOf(type), type.kind);
  return message === undefined ? ANY_MAP : structureOfMessage(message);
}
