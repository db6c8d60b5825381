// Persistent volumes, claims, drivers and attachments, as far as a node reads them in JSON.
import type { KubeObject } from './meta.ts';
import type { NodeSelectorTerm, ResourceList } from './pod.ts';

export type VolumeMode = 'Filesystem' | 'Block';

export type SecretReference = { readonly name?: string; readonly namespace?: string };

export type CsiVolumeSource = {
  readonly driver: string;
  readonly volumeHandle: string;
  readonly readOnly?: boolean;
  readonly fsType?: string;
  readonly volumeAttributes?: Readonly<Record<string, string>>;
  readonly nodeStageSecretRef?: SecretReference;
  readonly nodePublishSecretRef?: SecretReference;
  readonly nodeExpandSecretRef?: SecretReference;
};

/** `csi` of a pod's own volume. */
export type InlineCsiSource = {
  readonly driver: string;
  readonly readOnly?: boolean;
  readonly fsType?: string;
  readonly volumeAttributes?: Readonly<Record<string, string>>;
  readonly nodePublishSecretRef?: { readonly name?: string };
};

/** Beside what is named here, exactly one field of the spec is the source. */
export type PersistentVolumeSpec = {
  readonly capacity?: ResourceList;
  readonly accessModes?: readonly string[];
  readonly claimRef?: {
    readonly namespace?: string;
    readonly name?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
  };
  readonly mountOptions?: readonly string[];
  readonly volumeMode?: VolumeMode;
  readonly storageClassName?: string;
  readonly persistentVolumeReclaimPolicy?: string;
  readonly nodeAffinity?: { readonly required?: { readonly nodeSelectorTerms: readonly NodeSelectorTerm[] } };
  readonly csi?: CsiVolumeSource;
  readonly [source: string]: unknown;
};

export interface PersistentVolume extends KubeObject {
  readonly spec: PersistentVolumeSpec;
}

export type ClaimCondition = {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastProbeTime?: string | null;
  readonly lastTransitionTime?: string | null;
};

export interface PersistentVolumeClaim extends KubeObject {
  readonly spec?: {
    readonly volumeName?: string;
    readonly accessModes?: readonly string[];
    readonly volumeMode?: VolumeMode;
    readonly resources?: { readonly requests?: ResourceList };
  };
  readonly status?: {
    readonly phase?: string;
    readonly accessModes?: readonly string[];
    readonly capacity?: ResourceList;
    readonly allocatedResources?: ResourceList;
    readonly allocatedResourceStatuses?: Readonly<Record<string, string>>;
    readonly conditions?: readonly ClaimCondition[];
  };
}

export interface CsiDriver extends KubeObject {
  readonly spec: {
    readonly attachRequired?: boolean;
    readonly podInfoOnMount?: boolean;
    readonly volumeLifecycleModes?: readonly string[];
    readonly fsGroupPolicy?: string;
    readonly requiresRepublish?: boolean;
    readonly tokenRequests?: readonly { readonly audience: string; readonly expirationSeconds?: number }[];
    readonly serviceAccountTokenInSecrets?: boolean;
    readonly seLinuxMount?: boolean;
    readonly nodeAllocatableUpdatePeriodSeconds?: number;
  };
}

export interface VolumeAttachment extends KubeObject {
  readonly spec?: { readonly attacher?: string; readonly nodeName?: string };
  readonly status?: {
    readonly attached?: boolean;
    readonly attachmentMetadata?: Readonly<Record<string, string>>;
    readonly attachError?: { readonly message?: string; readonly errorCode?: number };
  };
}
