// For whom a node may ask a token: for audiences that its pod's volumes name, by themselves or through a CSI driver, and for those
// that a role grants it.
import { authorize } from './auth/authorize.ts';
import { keyOf, recordAt, recordsAt, textAt, type ApiObject, type Json } from './objects.ts';
import { NO_REQUEST } from './request-info.ts';
import type { ObjectStore } from './store.ts';
import type { User } from './strategy.ts';

/** Why not, if not. */
export function audienceProblem(
  store: ObjectStore,
  pod: ApiObject,
  account: string,
  audiences: readonly string[],
  user: User,
): string | undefined {
  if (audiences.length > 1) return 'node may only request 0 or 1 audiences';
  const audience = audiences[0] ?? '';
  if (recordsAt(pod, 'spec', 'volumes').some((volume) => isNamedBy(store, pod, volume, audience))) return undefined;
  const namespace = pod.metadata.namespace ?? '';
  const request = {
    ...NO_REQUEST,
    verb: 'request-serviceaccounts-token-audience',
    isResource: true,
    version: 'v1',
    resource: audience,
    namespace,
    name: account,
  };
  if (authorize(store, user, request).allowed) return undefined;
  return `audience "${audience}" not found in pod spec volume, ${user.name} is not authorized to request tokens for this audience`;
}

function isNamedBy(store: ObjectStore, pod: ApiObject, volume: Json, audience: string): boolean {
  for (const source of recordsAt(volume, 'projected', 'sources'))
    if (source['serviceAccountToken'] !== undefined && textAt(source, 'serviceAccountToken', 'audience') === audience)
      return true;
  const driver = store.get('storage.k8s.io/csidrivers', driverOf(store, pod, volume))?.object;
  return recordsAt(driver, 'spec', 'tokenRequests').some((request) => textAt(request, 'audience') === audience);
}

/** Empty when no CSI driver has to do with the volume. */
function driverOf(store: ObjectStore, pod: ApiObject, volume: Json): string {
  if (volume['csi'] !== undefined) return textAt(volume, 'csi', 'driver');
  const claim =
    volume['ephemeral'] === undefined
      ? textAt(volume, 'persistentVolumeClaim', 'claimName')
      : `${pod.metadata.name}-${textAt(volume, 'name')}`;
  if (claim === '') return '';
  const found = store.get('persistentvolumeclaims', keyOf(pod.metadata.namespace, claim))?.object;
  const persistent = store.get('persistentvolumes', textAt(found, 'spec', 'volumeName'))?.object;
  return textAt(recordAt(persistent, 'spec', 'csi'), 'driver');
}
