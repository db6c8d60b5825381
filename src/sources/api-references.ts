// Static pods must run without an API server, so they may not need anything from it. Pure.
import { containersOf, type Pod, type Volume } from '../core/pod.ts';

export type ApiReference = {
  /** As in `static pods may not reference <what>`. */
  readonly what: string;
  /** ConfigMaps and Secrets, which can also come from files beside the pods. */
  readonly localPossible: boolean;
  readonly field: string;
};

/** Everything in a pod that names an API object, in the order upstream looks for it. */
function* apiReferencesOf(pod: Pod): Iterable<ApiReference> {
  const { spec } = pod;
  if (spec.serviceAccountName) yield hard('serviceaccounts', 'spec.serviceAccountName');
  yield* envReferences(pod, 'secrets');
  if ((spec.imagePullSecrets ?? []).length > 0) yield soft('secrets', 'spec.imagePullSecrets');
  yield* envReferences(pod, 'configmaps');
  if ((spec.resourceClaims ?? []).length > 0) yield hard('resourceclaims', 'spec.resourceClaims');
  for (const [i, volume] of (spec.volumes ?? []).entries()) yield* volumeReferences(volume, `spec.volumes[${i}]`);
}

const hard = (what: string, field: string): ApiReference => ({ what, field, localPossible: false });
const soft = (what: string, field: string): ApiReference => ({ what, field, localPossible: true });

const LIST = { init: 'initContainers', main: 'containers', ephemeral: 'ephemeralContainers' } as const;

function* envReferences(pod: Pod, what: 'secrets' | 'configmaps'): Iterable<ApiReference> {
  const [keyRef, ref] =
    what === 'secrets' ? (['secretKeyRef', 'secretRef'] as const) : (['configMapKeyRef', 'configMapRef'] as const);
  const counts = { init: 0, main: 0, ephemeral: 0 };
  for (const { kind, container } of containersOf(pod)) {
    const at = `spec.${LIST[kind]}[${counts[kind]++}]`;
    for (const [i, source] of (container.envFrom ?? []).entries())
      if (source[ref] !== undefined) yield soft(what, `${at}.envFrom[${i}].${ref}`);
    for (const [i, variable] of (container.env ?? []).entries())
      if (variable.valueFrom?.[keyRef] !== undefined) yield soft(what, `${at}.env[${i}].valueFrom.${keyRef}`);
  }
}

/** Volumes whose mere kind needs an API object. Those not listed need none. */
const VOLUME_NEEDS: Readonly<Record<string, (at: string) => ApiReference>> = {
  configMap: (at) => soft('configmaps (via configmap volumes)', at),
  secret: (at) => soft('secrets (via secret volumes)', at),
  csi: (at) => hard('csidrivers (via CSI volumes)', at),
  glusterfs: (at) => hard('endpoints (via glusterFS volumes)', at),
  persistentVolumeClaim: (at) => hard('persistentvolumeclaims', at),
  ephemeral: (at) => hard('persistentvolumeclaims (via ephemeral volumes)', at),
  azureFile: (at) => hard('secrets (via azureFile volumes)', at),
};

/** Other kinds may still name a secret with credentials. */
const VOLUME_SECRETS = ['cephfs', 'cinder', 'flexVolume', 'rbd', 'scaleIO', 'iscsi', 'storageos'];

function* volumeReferences(volume: Volume, at: string): Iterable<ApiReference> {
  for (const [kind, reference] of Object.entries(VOLUME_NEEDS))
    if (volume[kind] !== undefined) yield reference(`${at}.${kind}`);
  for (const kind of VOLUME_SECRETS) {
    const source = volume[kind] as { secretRef?: unknown } | undefined;
    if (source?.secretRef !== undefined) yield hard('secrets', `${at}.${kind}.secretRef`);
  }
  for (const [i, source] of (volume.projected?.sources ?? []).entries()) {
    const from = `${at}.projected.sources[${i}]`;
    if (source.configMap !== undefined) yield soft('configmaps (via projected volumes)', `${from}.configMap`);
    if (source.secret !== undefined) yield soft('secrets (via projected volumes)', `${from}.secret`);
    if (source.serviceAccountToken !== undefined)
      yield hard('serviceaccounts (via projected volumes)', `${from}.serviceAccountToken`);
    if (source.clusterTrustBundle !== undefined) yield hard('clustertrustbundles', `${from}.clusterTrustBundle`);
    if (source.podCertificate !== undefined) yield hard('podcertificates', `${from}.podCertificate`);
  }
}

export type AllowedReferences = {
  /** ConfigMaps and Secrets come from files beside the pods. */
  readonly localObjects: boolean;
  /** Pods may name API objects, at their own risk (gate `PreventStaticPodAPIReferences` off). */
  readonly apiObjects?: boolean;
};

/** A static pod can have none of these, whoever allows it to name them. */
const NEVER: readonly string[] = ['resourceclaims', 'clustertrustbundles'];

/** The first reference that cannot be served on this node. */
export function forbiddenReference(
  pod: Pod,
  { localObjects, apiObjects = false }: AllowedReferences,
): ApiReference | undefined {
  for (const reference of apiReferencesOf(pod)) {
    const isAllowed = apiObjects ? !NEVER.includes(reference.what) : localObjects && reference.localPossible;
    if (!isAllowed) return reference;
  }
  return undefined;
}
