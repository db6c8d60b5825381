// How the volume controllers see and change claims, volumes and attachments.
import { keyOf, recordAt, recordsAt, textAt, type ApiObject, type Json } from '../../api/objects.ts';
import type { Registry } from '../../api/registry.ts';
import { resourceNamed } from '../../api/resources.ts';
import { systemContext } from '../../seed.ts';
import { recordEvent, type EventText } from '../events.ts';

export const CLAIMS = 'persistentvolumeclaims';
export const VOLUMES = 'persistentvolumes';
export const CLASSES = 'storage.k8s.io/storageclasses';
export const ATTACHMENTS = 'storage.k8s.io/volumeattachments';
export const CSI_NODES = 'storage.k8s.io/csinodes';
export const CSI_DRIVERS = 'storage.k8s.io/csidrivers';

export const PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
export const OLD_PROVISIONER = 'volume.beta.kubernetes.io/storage-provisioner';
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';

export const find = (registry: Registry, storage: string, key: string): ApiObject | undefined =>
  registry.store.get(storage, key)?.object as ApiObject | undefined;

export const all = (registry: Registry, storage: string): ApiObject[] =>
  registry.store.list(storage).map((stored) => stored.object as ApiObject);

export const keyOfObject = (object: ApiObject): string => keyOf(object.metadata.namespace, object.metadata.name);

export const isDeleting = (object: ApiObject): boolean => object.metadata.deletionTimestamp !== undefined;

/** Changes an object where it still exists. */
export function update(
  registry: Registry,
  storage: string,
  object: ApiObject,
  change: (draft: ApiObject) => ApiObject,
  subresource = '',
): ApiObject {
  const { namespace = '', name } = object.metadata;
  return registry.modify(resourceNamed(storage), namespace, name, change, systemContext(), subresource)
    .object as ApiObject;
}

export const withSpec = (draft: ApiObject, spec: Json): ApiObject => ({
  ...draft,
  spec: { ...recordAt(draft, 'spec'), ...spec },
});

export const withStatus = (draft: ApiObject, status: Json): ApiObject => ({
  ...draft,
  status: { ...recordAt(draft, 'status'), ...status },
});

export const withAnnotations = (draft: ApiObject, annotations: Record<string, string>): ApiObject => ({
  ...draft,
  metadata: { ...draft.metadata, annotations: { ...draft.metadata.annotations, ...annotations } },
});

export function withoutFinalizer(draft: ApiObject, finalizer: string): ApiObject {
  const finalizers = (draft.metadata.finalizers ?? []).filter((f) => f !== finalizer);
  return { ...draft, metadata: { ...draft.metadata, finalizers } };
}

export const tell = (registry: Registry, component: string, about: ApiObject, event: EventText): void =>
  recordEvent(registry, component, about, event);

/** The claims of a pod, by volume: named ones and those made for its ephemeral volumes. */
export const claimNamesOf = (pod: ApiObject): string[] =>
  recordsAt(pod, 'spec', 'volumes').flatMap((volume) => {
    const named = textAt(volume, 'persistentVolumeClaim', 'claimName');
    if (named !== '') return [named];
    return volume['ephemeral'] === undefined ? [] : [`${pod.metadata.name}-${textAt(volume, 'name')}`];
  });

export const isFinished = (pod: ApiObject): boolean => ['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase'));
