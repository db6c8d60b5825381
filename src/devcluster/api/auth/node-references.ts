// Which secrets, config maps, claims, volumes and accounts the pods of one node refer to: what its kubelet may read.
import { isJson, keyOf, recordAt, recordsAt, textAt, type ApiObject, type Json } from '../objects.ts';
import type { ObjectStore } from '../store.ts';

export type Referenced = 'secrets' | 'configmaps' | 'persistentvolumeclaims' | 'serviceaccounts' | 'resourceclaims';

const podsOf = (store: ObjectStore, node: string): ApiObject[] =>
  store
    .list('pods')
    .map((stored) => stored.object as ApiObject)
    .filter((pod) => textAt(pod, 'spec', 'nodeName') === node);

/** Whether a pod of the node refers to this object. Mirror pods give no rights: anybody on the node can make them. */
export function isReferenced(
  store: ObjectStore,
  node: string,
  what: Referenced,
  namespace: string,
  name: string,
): boolean {
  return (
    podsOf(store, node).some(
      (pod) =>
        pod.metadata.namespace === namespace &&
        pod.metadata.annotations?.['kubernetes.io/config.mirror'] === undefined &&
        referencesOf(pod, what).has(name),
    ) ||
    (what === 'secrets' && volumeSecrets(store, node).has(keyOf(namespace, name)))
  );
}

function referencesOf(pod: ApiObject, what: Referenced): ReadonlySet<string> {
  const found = new Set<string>();
  const add = (value: unknown, ...path: string[]): void => {
    const name = textAt(value, ...path);
    if (name !== '') found.add(name);
  };
  const spec = recordAt(pod, 'spec');
  if (what === 'serviceaccounts') add(spec, 'serviceAccountName');
  if (what === 'resourceclaims')
    for (const status of recordsAt(pod, 'status', 'resourceClaimStatuses')) add(status, 'resourceClaimName');
  if (what === 'resourceclaims') for (const claim of recordsAt(spec, 'resourceClaims')) add(claim, 'resourceClaimName');
  if (what === 'secrets') for (const secret of recordsAt(spec, 'imagePullSecrets')) add(secret, 'name');
  for (const volume of recordsAt(spec, 'volumes')) volumeReferences(pod, volume, what, add);
  if (what === 'secrets' || what === 'configmaps')
    for (const list of ['containers', 'initContainers', 'ephemeralContainers'])
      for (const container of recordsAt(spec, list)) environmentReferences(container, what, add);
  return found;
}

type Add = (value: unknown, ...path: string[]) => void;

function volumeReferences(pod: ApiObject, volume: Json, what: Referenced, add: Add): void {
  if (what === 'persistentvolumeclaims') {
    add(volume, 'persistentVolumeClaim', 'claimName');
    if (volume['ephemeral'] !== undefined) add({ name: `${pod.metadata.name}-${textAt(volume, 'name')}` }, 'name');
  }
  if (what === 'configmaps') {
    add(volume, 'configMap', 'name');
    for (const source of recordsAt(volume, 'projected', 'sources')) add(source, 'configMap', 'name');
  }
  if (what !== 'secrets') return;
  add(volume, 'secret', 'secretName');
  for (const source of recordsAt(volume, 'projected', 'sources')) add(source, 'secret', 'name');
  for (const value of Object.values(volume))
    if (isJson(value)) for (const field of ['secretRef', 'nodePublishSecretRef']) add(value, field, 'name');
}

function environmentReferences(container: Json, what: 'secrets' | 'configmaps', add: Add): void {
  const [from, key] = what === 'secrets' ? ['secretRef', 'secretKeyRef'] : ['configMapRef', 'configMapKeyRef'];
  for (const source of recordsAt(container, 'envFrom')) add(source, from ?? '', 'name');
  for (const variable of recordsAt(container, 'env')) add(variable, 'valueFrom', key ?? '', 'name');
}

/** Volumes behind the claims of the node's pods. */
export function volumesOf(store: ObjectStore, node: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const pod of podsOf(store, node))
    for (const claim of referencesOf(pod, 'persistentvolumeclaims')) {
      const stored = store.get('persistentvolumeclaims', keyOf(pod.metadata.namespace, claim));
      const volume = textAt(stored?.object, 'spec', 'volumeName');
      if (volume !== '') names.add(volume);
    }
  return names;
}

/** Secrets that persistent volumes of the node name, as `namespace/name`. */
function volumeSecrets(store: ObjectStore, node: string): ReadonlySet<string> {
  const found = new Set<string>();
  for (const name of volumesOf(store, node)) {
    const spec = recordAt(store.get('persistentvolumes', name)?.object, 'spec');
    for (const source of Object.values(spec))
      if (isJson(source))
        for (const [field, ref] of Object.entries(source))
          if (field.toLowerCase().endsWith('secretref') && isJson(ref))
            found.add(keyOf(textAt(ref, 'namespace') || textAt(spec, 'claimRef', 'namespace'), textAt(ref, 'name')));
  }
  return found;
}

export const attachmentsOf = (store: ObjectStore, node: string): ReadonlySet<string> =>
  new Set(
    store
      .list('storage.k8s.io/volumeattachments')
      .filter((a) => textAt(a.object, 'spec', 'nodeName') === node)
      .map((a) => a.object.metadata.name),
  );

const KINDS: readonly string[] = [
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'serviceaccounts',
  'resourceclaims',
];

export const isReferenceKind = (resource: string): resource is Referenced => KINDS.includes(resource);
