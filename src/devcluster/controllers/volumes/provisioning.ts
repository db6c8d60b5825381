// What a class and a claim make of a new volume: the request to the driver, the object, references to secrets. Pure.
import { bytesOf, formatQuantity, fromUnits } from '../../../core/quantity.ts';
import {
  AccessModeType,
  type CreateVolumeRequest,
  type Volume,
  type VolumeCapability,
} from '../../../lib/csi-api/gen/csi.ts';
import { at, recordAt, textAt, textsAt, type ApiObject, type Json } from '../../api/objects.ts';
import { PROVISIONED_BY } from './objects.ts';

const PREFIX = 'csi.storage.k8s.io/';
export const DELETION_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer';
/** What the volume's deletion needs of secrets is kept on the volume: its class may be gone by then. */
const DELETION_SECRET = 'volume.kubernetes.io/provisioner-deletion-secret-';

const MODES: Readonly<Record<string, AccessModeType>> = {
  ReadWriteOnce: AccessModeType.SINGLE_NODE_MULTI_WRITER,
  ReadOnlyMany: AccessModeType.MULTI_NODE_READER_ONLY,
  ReadWriteMany: AccessModeType.MULTI_NODE_MULTI_WRITER,
  ReadWriteOncePod: AccessModeType.SINGLE_NODE_SINGLE_WRITER,
};

export type SecretName = { readonly name: string; readonly namespace: string };

export const volumeNameFor = (claim: ApiObject): string => `pvc-${claim.metadata.uid ?? ''}`;

const parametersOf = (storageClass: ApiObject): Record<string, string> =>
  recordAt(storageClass, 'parameters') as Record<string, string>;

/** The secret a class names for one purpose (`node-stage`, …), with `${pvc.name}` and its like filled in. */
export function secretFor(storageClass: ApiObject, purpose: string, claim: ApiObject): SecretName | undefined {
  const parameters = parametersOf(storageClass);
  const { name, namespace = '', annotations = {} } = claim.metadata;
  const values: Record<string, string> = {
    'pv.name': volumeNameFor(claim),
    'pvc.name': name,
    'pvc.namespace': namespace,
  };
  for (const [key, value] of Object.entries(annotations)) values[`pvc.annotations['${key}']`] = value;
  const filled = (text = ''): string => text.replaceAll(/\$\{([^}]+)\}/g, (whole, key: string) => values[key] ?? whole);
  const secret = {
    name: filled(parameters[`${PREFIX}${purpose}-secret-name`]),
    namespace: filled(parameters[`${PREFIX}${purpose}-secret-namespace`]),
  };
  return secret.name === '' || secret.namespace === '' ? undefined : secret;
}

/** How the volume is to be used: by its class, the claim or later the volume itself. */
export function capabilityOf(object: ApiObject, fsType: string, mountFlags: readonly string[]): VolumeCapability {
  const mode = MODES[textsAt(object, 'spec', 'accessModes')[0] ?? ''] ?? AccessModeType.SINGLE_NODE_WRITER;
  const access = { accessMode: { mode } };
  if (textAt(object, 'spec', 'volumeMode') === 'Block') return { block: {}, ...access };
  return { mount: { fsType, mountFlags: [...mountFlags], volumeMountGroup: '' }, ...access };
}

const fsTypeOf = (storageClass: ApiObject): string => parametersOf(storageClass)[`${PREFIX}fstype`] ?? '';

export function createRequest(
  storageClass: ApiObject,
  claim: ApiObject,
  secrets: Record<string, string>,
): CreateVolumeRequest {
  const own = Object.entries(parametersOf(storageClass)).filter(([key]) => !key.startsWith(PREFIX));
  const size = at(claim, 'spec', 'resources', 'requests', 'storage');
  return {
    name: volumeNameFor(claim),
    capacityRange: { requiredBytes: bytesOf(String(size)), limitBytes: 0 },
    volumeCapabilities: [capabilityOf(claim, fsTypeOf(storageClass), textsAt(storageClass, 'mountOptions'))],
    parameters: Object.fromEntries(own),
    secrets,
    mutableParameters: {},
  };
}

const REFERENCES = {
  controllerPublishSecretRef: 'controller-publish',
  nodeStageSecretRef: 'node-stage',
  nodePublishSecretRef: 'node-publish',
  controllerExpandSecretRef: 'controller-expand',
  nodeExpandSecretRef: 'node-expand',
} as const;

/** The object for a volume the driver has made. */
export function volumeObject(driver: string, storageClass: ApiObject, claim: ApiObject, made: Volume): Json {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const deletion = secretFor(storageClass, 'provisioner', claim);
  const mountOptions = textsAt(storageClass, 'mountOptions');
  const isBlock = textAt(claim, 'spec', 'volumeMode') === 'Block';
  const fsType = fsTypeOf(storageClass);
  const secrets: Json = {};
  for (const [field, purpose] of Object.entries(REFERENCES)) {
    const secret = secretFor(storageClass, purpose, claim);
    if (secret !== undefined) secrets[field] = secret;
  }
  return {
    metadata: {
      name: volumeNameFor(claim),
      annotations: {
        [PROVISIONED_BY]: driver,
        [`${DELETION_SECRET}name`]: deletion?.name ?? '',
        [`${DELETION_SECRET}namespace`]: deletion?.namespace ?? '',
      },
      ...(textAt(storageClass, 'reclaimPolicy') === 'Delete' ? { finalizers: [DELETION_FINALIZER] } : {}),
    },
    spec: {
      capacity: { storage: formatQuantity(fromUnits(made.capacityBytes, 'BinarySI')) },
      accessModes: at(claim, 'spec', 'accessModes'),
      volumeMode: at(claim, 'spec', 'volumeMode'),
      persistentVolumeReclaimPolicy: textAt(storageClass, 'reclaimPolicy'),
      storageClassName: storageClass.metadata.name,
      ...(mountOptions.length === 0 || isBlock ? {} : { mountOptions }),
      claimRef: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid, resourceVersion },
      csi: {
        driver,
        volumeHandle: made.volumeId,
        ...(isBlock || fsType === '' ? {} : { fsType }),
        volumeAttributes: {
          ...made.volumeContext,
          'storage.kubernetes.io/csiProvisionerIdentity': `kubelet-dev-${driver}`,
        },
        ...secrets,
      },
    },
  };
}

/** The secret that the deletion of this volume needs. */
export function deletionSecret(volume: ApiObject): SecretName | undefined {
  const annotations = volume.metadata.annotations ?? {};
  const [name = '', namespace = ''] = [
    annotations[`${DELETION_SECRET}name`],
    annotations[`${DELETION_SECRET}namespace`],
  ];
  return name === '' ? undefined : { name, namespace };
}
