// The API resources the kubelet talks to: where they live and what they are in JSON.
import type { KubeObject } from '../core/meta.ts';
import type {
  ClusterTrustBundle,
  ConfigMap,
  KubeEvent,
  Lease,
  Node,
  RuntimeClass,
  Secret,
  Service,
} from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import type { CsiDriver, PersistentVolume, PersistentVolumeClaim, VolumeAttachment } from '../core/storage.ts';

export type Resource<T> = {
  /** `/api/v1` or `/apis/GROUP/VERSION`. */
  readonly base: string;
  readonly plural: string;
  /** Never set: carries the object's type. */
  readonly object?: T;
};

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;
export type Where = {
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
  readonly query?: Query;
};

const core = <T>(plural: string): Resource<T> => ({ base: '/api/v1', plural });
const group = <T>(name: string, plural: string, version = 'v1'): Resource<T> => ({
  base: `/apis/${name}/${version}`,
  plural,
});

/** Path and query of a request, every piece escaped. Query keys are sorted. */
export function targetOf(resource: Resource<unknown>, where: Where): string {
  const parts = [
    resource.base,
    ...(where.namespace === undefined ? [] : ['namespaces', encodeURIComponent(where.namespace)]),
    resource.plural,
    ...(where.name === undefined ? [] : [encodeURIComponent(where.name)]),
    ...(where.subresource === undefined ? [] : [where.subresource]),
  ];
  const query = Object.entries(where.query ?? {})
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`)
    .join('&');
  return query === '' ? parts.join('/') : `${parts.join('/')}?${query}`;
}

export interface CsiNode extends KubeObject {
  readonly spec: {
    readonly drivers:
      | readonly {
          readonly name: string;
          readonly nodeID: string;
          readonly topologyKeys?: readonly string[] | null;
          readonly allocatable?: { readonly count?: number };
        }[]
      | null;
  };
}
/** A claim for devices, as far as a node reads it. */
export interface ResourceClaim extends KubeObject {
  readonly status?: {
    readonly allocation?: { readonly devices?: { readonly results?: readonly { readonly driver: string }[] } };
    readonly reservedFor?: readonly {
      readonly apiGroup?: string;
      readonly resource: string;
      readonly name?: string;
      readonly uid: string;
    }[];
  };
}
export interface TokenRequest extends KubeObject {
  readonly spec: {
    readonly audiences: readonly string[] | null;
    readonly expirationSeconds?: number;
    readonly boundObjectRef?: {
      readonly kind: string;
      readonly apiVersion: string;
      readonly name: string;
      readonly uid: string;
    };
  };
  readonly status?: { readonly token: string; readonly expirationTimestamp: string };
}
export type UserInfo = {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
};
export interface TokenReview extends KubeObject {
  readonly spec: { readonly token: string };
  readonly status?: { readonly authenticated?: boolean; readonly user?: UserInfo; readonly error?: string };
}
export interface SubjectAccessReview extends KubeObject {
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: { readonly allowed?: boolean; readonly denied?: boolean; readonly reason?: string };
}
export interface CertificateSigningRequest extends KubeObject {
  readonly spec: {
    /** Base64 of the PEM request. */
    readonly request: string;
    readonly signerName: string;
    readonly usages?: readonly string[];
    readonly expirationSeconds?: number;
  };
  readonly status?: {
    readonly certificate?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status?: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
  };
}
export interface PodCertificateRequest extends KubeObject {
  readonly spec: { readonly signerName: string; readonly podUID: string };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly reason?: string; readonly message?: string }[];
    readonly certificateChain?: string;
    readonly beginRefreshAt?: string;
    readonly notAfter?: string;
  };
}

export const PODS = core<Pod>('pods');
export const NODES = core<Node>('nodes');
export const SECRETS = core<Secret>('secrets');
export const CONFIG_MAPS = core<ConfigMap>('configmaps');
export const SERVICES = core<Service>('services');
export const EVENTS = core<KubeEvent>('events');
export const SERVICE_ACCOUNTS = core<TokenRequest>('serviceaccounts');
export const LEASES = group<Lease>('coordination.k8s.io', 'leases');
export const RUNTIME_CLASSES = group<RuntimeClass>('node.k8s.io', 'runtimeclasses');
export const CSI_NODES = group<CsiNode>('storage.k8s.io', 'csinodes');
export const CSI_DRIVERS = group<CsiDriver>('storage.k8s.io', 'csidrivers');
export const VOLUME_ATTACHMENTS = group<VolumeAttachment>('storage.k8s.io', 'volumeattachments');
export const PERSISTENT_VOLUMES = core<PersistentVolume>('persistentvolumes');
export const PERSISTENT_VOLUME_CLAIMS = core<PersistentVolumeClaim>('persistentvolumeclaims');
export const TOKEN_REVIEWS = group<TokenReview>('authentication.k8s.io', 'tokenreviews');
export const SUBJECT_ACCESS_REVIEWS = group<SubjectAccessReview>('authorization.k8s.io', 'subjectaccessreviews');
export const SIGNING_REQUESTS = group<CertificateSigningRequest>('certificates.k8s.io', 'certificatesigningrequests');
export const TRUST_BUNDLES = group<ClusterTrustBundle>('certificates.k8s.io', 'clustertrustbundles', 'v1beta1');
export const POD_CERTIFICATE_REQUESTS = group<PodCertificateRequest>(
  'certificates.k8s.io',
  'podcertificaterequests',
  'v1beta1',
);
export const RESOURCE_CLAIMS = group<ResourceClaim>('resource.k8s.io', 'resourceclaims');
export const RESOURCE_SLICES = group<KubeObject>('resource.k8s.io', 'resourceslices');
